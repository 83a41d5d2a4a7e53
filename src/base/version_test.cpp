// Version orders: dpkg as the oracle on generated pairs, a committed PEP 440 table, the field's own strings.
#include "base/version.h"

#include <sys/wait.h>

#include <cstdlib>
#include <random>

namespace ep {
namespace {

int sign(int x) {
  return (x > 0) - (x < 0);
}

std::string random_debian(std::mt19937& random) {
  const std::string alphabet = "0012aZ.+~-";
  std::string s = random() % 3 == 0 ? std::to_string(random() % 2) + ":" : "";
  s += char('0' + random() % 3);  // dpkg wants an upstream part that starts with a digit
  for (int n = int(random() % 6); n-- > 0;) s += alphabet[random() % alphabet.size()];
  if (s.back() == '-') s += "1";
  return s;
}

TEST(Version, DebianOrderIsDpkgs) {
  if (std::system("dpkg --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "dpkg is not on this machine";
  std::mt19937 random(11);
  // One shell for all pairs: dpkg answers by exit code.
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int i = 0; i < 150; ++i) pairs.emplace_back(random_debian(random), random_debian(random));
  std::string script;
  for (auto& [a, b] : pairs)
    script += "if dpkg --compare-versions '" + a + "' lt '" + b +
              "'; then echo -1; elif dpkg --compare-versions '" + a + "' gt '" + b +
              "'; then echo 1; else echo 0; fi\n";
  FILE* p = popen(script.c_str(), "r");
  ASSERT_TRUE(p);
  for (auto& [a, b] : pairs) {
    int answer = 9;
    ASSERT_EQ(fscanf(p, "%d", &answer), 1);
    EXPECT_EQ(sign(compare_versions(VersionOrder::debian, a, b)), answer) << a << " vs " << b;
    EXPECT_EQ(sign(compare_versions(VersionOrder::debian, b, a)), -answer) << b << " vs " << a;
  }
  pclose(p);
}

TEST(Version, DebianKnownPairs) {
  auto cmp = [](auto a, auto b) { return sign(compare_versions(VersionOrder::debian, a, b)); };
  EXPECT_EQ(cmp("1.0~rc1-1", "1.0-1"), -1);
  EXPECT_EQ(cmp("2.10-1", "2.9-1"), 1);
  EXPECT_EQ(cmp("1:1.0", "2.0"), 1);
  EXPECT_EQ(cmp("12.9.1-1", "12.9.1-1"), 0);
  EXPECT_EQ(cmp("580.95.05-0ubuntu1", "580.95.05-0ubuntu0.24.04.1"), 1);
}

// In order, as Python's `packaging` 24 sorts them (PEP 440, "Summary of permitted suffixes and relative
// ordering").
const char* const kAscending[] = {
    "1.dev0",
    "1.0.dev456",
    "1.0a1",
    "1.0a2.dev456",
    "1.0a12.dev456",
    "1.0a12",
    "1.0b1.dev456",
    "1.0b2",
    "1.0b2.post345.dev456",
    "1.0b2.post345",
    "1.0rc1.dev456",
    "1.0rc1",
    "1.0",
    "1.0+abc.5",
    "1.0+abc.7",
    "1.0+5",
    "1.0.post456.dev34",
    "1.0.post456",
    "1.0.15",
    "1.1.dev1",
    "2.9.1",
    "2.9.1+cu129",
    "2.9.1+cu130",
    "2.10.0",
    "2.30.4",
    "1!0.1",
};

TEST(Version, Pep440TableIsAscending) {
  for (size_t i = 0; i < std::size(kAscending); ++i)
    for (size_t j = 0; j < std::size(kAscending); ++j)
      EXPECT_EQ(sign(compare_versions(VersionOrder::pep440, kAscending[i], kAscending[j])),
                sign(int(i) - int(j)))
          << kAscending[i] << " vs " << kAscending[j];
}

TEST(Version, Pep440EqualForms) {
  const std::pair<const char*, const char*> equal[] = {
      {"1.0", "1.0.0"},       {"1.0a1", "1.0.alpha.1"}, {"1.0rc1", "1.0-c1"},
      {"v1.0", "1.0"},        {"1.0-1", "1.0.post1"},   {"1.0.DEV1", "1.0dev1"},
      {"1.0+a-b", "1.0+a.b"}, {"1.0pre2", "1.0rc2"},    {"1.0rev3", "1.0.post3"},
      {"01.0", "1"},          {"1.0post", "1.0.post0"},
  };
  for (auto [a, b] : equal) EXPECT_EQ(compare_versions(VersionOrder::pep440, a, b), 0) << a << " = " << b;
}

TEST(Version, DottedKnownPairs) {
  auto cmp = [](auto a, auto b) { return sign(compare_versions(VersionOrder::dotted, a, b)); };
  EXPECT_EQ(cmp("580.95.05", "580.105.08"), -1);
  EXPECT_EQ(cmp("580.95.05", "580.95.5"), 0);
  EXPECT_EQ(cmp("v3.5.19-1", "3.5.19"), 1);
  EXPECT_EQ(cmp("v3.5.19-1", "3.5.19-1"), 0);
  EXPECT_EQ(cmp("v3.5.19-1", "3.5.20"), -1);
  EXPECT_EQ(cmp("12.9", "12.9.0"), 0);
  EXPECT_EQ(cmp("12.9", "13.0"), -1);
  EXPECT_EQ(cmp("28.43.1014", "28.9.9999"), 1);
}

TEST(Version, OrdersAreTotal) {
  std::mt19937 random(3);
  const std::string alphabet = "019.-+~!arcvdev*";
  for (auto order : {VersionOrder::dotted, VersionOrder::pep440, VersionOrder::debian}) {
    std::vector<std::string> some;
    for (int i = 0; i < 40; ++i) {
      std::string s;
      for (int n = int(random() % 7); n-- > 0;) s += alphabet[random() % alphabet.size()];
      some.push_back(s);
    }
    for (auto& a : some)
      for (auto& b : some) {
        int ab = sign(compare_versions(order, a, b));
        EXPECT_EQ(ab, -sign(compare_versions(order, b, a))) << int(order) << " [" << a << "] [" << b << "]";
        for (auto& c : some)
          if (ab <= 0 && compare_versions(order, b, c) <= 0) {
            ASSERT_LE(compare_versions(order, a, c), 0)
                << int(order) << " [" << a << "] [" << b << "] [" << c << "]";
          }
      }
  }
}

TEST(Version, NcclCodes) {
  EXPECT_EQ(nccl_version(22809), "2.28.9");
  EXPECT_EQ(nccl_version(23004), "2.30.4");
  EXPECT_EQ(nccl_version(2804), "2.8.4");
  EXPECT_EQ(nccl_code("2.28.9"), 22809);
  EXPECT_EQ(nccl_code("2.8.4"), 2804);
  EXPECT_EQ(nccl_code("2.30.4-1"), 23004);
  EXPECT_EQ(nccl_code("two"), 0);
  EXPECT_EQ(nccl_version(0), "");
}

TEST(Version, Ranges) {
  auto in = [](VersionOrder o, const char* range, const char* v) {
    auto r = VersionRange::parse(o, range);
    EXPECT_TRUE(r) << range;
    return r && r->contains(v);
  };
  using O = VersionOrder;
  EXPECT_TRUE(in(O::pep440, ">=2.30.4, <3", "2.30.4"));
  EXPECT_FALSE(in(O::pep440, ">=2.30.4, <3", "3.0"));
  EXPECT_FALSE(in(O::pep440, ">=2.30.4, <3, !=2.31.0", "2.31.0"));
  EXPECT_TRUE(in(O::pep440, "==2.9.1", "2.9.1+cu129"));
  EXPECT_FALSE(in(O::pep440, "==2.9.1+cu130", "2.9.1+cu129"));
  EXPECT_TRUE(in(O::dotted, "==12.*", "12.9.1"));
  EXPECT_FALSE(in(O::dotted, "==12.*", "120.1"));
  EXPECT_TRUE(in(O::dotted, "!=3.4.*", "3.5.19-1"));
  EXPECT_TRUE(in(O::dotted, "==3.5.*", "v3.5.19-1"));
  EXPECT_TRUE(in(O::dotted, ">=525.60.13", "580.95.05"));
  EXPECT_TRUE(in(O::dotted, "", "anything"));
  for (auto bad : {"2.0", ">=", ">= 1 2", ">=1.*", "=>1", ">=x", "~=1.0", ">=1,,<2"}) {
    auto r = VersionRange::parse(O::pep440, bad);
    ASSERT_FALSE(r) << bad;
    EXPECT_EQ(r.error().kind, ErrorKind::malformed);
  }
}

}  // namespace
}  // namespace ep
