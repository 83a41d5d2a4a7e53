// SHA-256 against the standard's own examples (FIPS 180-2, appendix B).
#include "base/digest.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace ep {
namespace {

TEST(Digest, StandardExamples) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, FileEqualsBytes) {
  std::string path = testing::TempDir() + "digest_test." + std::to_string(getpid());
  std::string bytes(700001, 'x');
  std::ofstream(path, std::ios::binary) << bytes;
  auto hash = sha256_file(path);
  ASSERT_TRUE(hash) << hash.error().text();
  EXPECT_EQ(*hash, sha256_hex(bytes));
  remove(path.c_str());
  EXPECT_EQ(sha256_file(path).error().kind, ErrorKind::absent);
  EXPECT_EQ(sha256_file("/").error().kind, ErrorKind::unreadable);
}

TEST(Digest, KnowsAHash) {
  EXPECT_TRUE(is_sha256_hex(sha256_hex("x")));
  EXPECT_FALSE(is_sha256_hex("abc"));
  EXPECT_FALSE(is_sha256_hex(std::string(64, 'g')));
}

}  // namespace
}  // namespace ep
