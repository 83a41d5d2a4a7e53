#include "doctor/pseudonyms.h"

namespace ep {
namespace {

std::string hide(Pseudonyms& p, const std::string& text) {
  p.learn(text);
  return p.replace(text);
}

TEST(Pseudonyms, AddressesKeepTheirSubnets) {
  Pseudonyms p;
  EXPECT_EQ(hide(p, "from 10.1.2.3 to 10.1.2.9 via 10.7.0.1, local 127.0.0.1"),
            "from 198.18.0.1 to 198.18.0.2 via 198.18.1.1, local 127.0.0.1");
  EXPECT_EQ(p.replace("again 10.1.2.3"), "again 198.18.0.1");
}

TEST(Pseudonyms, VersionsAndNumbersStay) {
  Pseudonyms p;
  const std::string text =
      "driver 580.95.05, NVSHMEM v3.5.19-1, firmware 28.43.1014, 12:34:56, 0000:17:00.0, 58.10 GB/s, "
      "vbios 97.00.00.00.01, 580.95.05-0ubuntu0.24.04.1";
  EXPECT_EQ(hide(p, text), text);
}

TEST(Pseudonyms, HostsAndUsersWhereverTheyStand) {
  Pseudonyms p;
  const std::string out = hide(
      p, "alice@gpu17.corp.example:~$ ls /home/alice\ngpu17:12:34 [0] NCCL INFO x\nsee gpu17 and gpu170\n");
  EXPECT_EQ(out.find("alice"), std::string::npos);
  EXPECT_EQ(out.find("gpu17:"), std::string::npos);
  EXPECT_EQ(out.find("see gpu17 "), std::string::npos);
  EXPECT_NE(out.find("gpu170"), std::string::npos) << "only whole words";
}

TEST(Pseudonyms, GidsKeepTheirKind) {
  Pseudonyms p;
  EXPECT_EQ(hide(p, "0000:0000:0000:0000:0000:ffff:0a01:0203"), "0000:0000:0000:0000:0000:ffff:c612:0001");
  EXPECT_EQ(hide(p, "10.1.2.3"), "198.18.0.1") << "the address behind the GID has the same stand-in";
  EXPECT_EQ(hide(p, "fe80:0000:0000:0000:bace:f6ff:fe12:3456").substr(0, 5), "fe80:");
  EXPECT_EQ(hide(p, "0000:0000:0000:0000:0000:0000:0000:0000"), "0000:0000:0000:0000:0000:0000:0000:0000");
}

TEST(Pseudonyms, SecretsIdentitiesAndSerials) {
  Pseudonyms p;
  for (const char* text :
       {"HF_TOKEN=hf_abcdefghijklmnopqrstuv", "Authorization: Bearer abcdefghijkl", "password: hunter22x",
        "mail bob@example.com", "GPU-12345678-1234-1234-1234-123456789abc", "link/ether b8:ce:f6:12:34:56",
        "Serial Number : 1652321012345", "node_guid: b8ce:f603:0012:3456", "fe80::bace:f6ff:fe12:3456",
        "Node GUID: 0xb8cef60300123456"})
    EXPECT_NE(hide(p, text), text) << text;
  EXPECT_EQ(p.replace("HF_TOKEN=hf_abcdefghijklmnopqrstuv"), "HF_TOKEN=token-1");
}

TEST(Pseudonyms, TwiceIsTheSameAsOnce) {
  Pseudonyms p;
  const std::string once = hide(p, "10.1.2.3 b8:ce:f6:12:34:56 alice@gpu17:~$");
  Pseudonyms q;
  q.learn("10.1.2.3 b8:ce:f6:12:34:56 alice@gpu17:~$");
  EXPECT_EQ(q.replace("10.1.2.3 b8:ce:f6:12:34:56 alice@gpu17:~$"), once);
}

}  // namespace
}  // namespace ep
