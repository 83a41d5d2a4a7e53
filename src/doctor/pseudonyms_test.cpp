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
      "vbios 97.00.00.00.01, 580.95.05-0ubuntu0.24.04.1, MLNX_OFED_LINUX-24.10-3.2.5.0";
  EXPECT_EQ(hide(p, text), text);
}

TEST(Pseudonyms, WordsOfTheFieldAreNoNames) {
  for (const char* text : {"Linux version 6.14.0-1007-gcp (buildd@lcy02-amd64-044) #7-Ubuntu SMP\n",
                           "NVRM version: NVIDIA UNIX Open Kernel Module  580.95.05\n", "hostname: unknown\n",
                           "driver: nvidia\nssh node\n", "Nov 30 12:00:00 kernel nvidia: module loaded\n"}) {
    Pseudonyms p;
    const std::string all = std::string(text) + "version driver nvidia kernel unknown node\n";
    EXPECT_NE(hide(p, all).find("version driver nvidia kernel unknown node"), std::string::npos) << text;
  }
  Pseudonyms p;
  EXPECT_EQ(hide(p, "Linux gpu17 6.14.0-1007-gcp #7-Ubuntu SMP"),
            "Linux host-1 6.14.0-1007-gcp #7-Ubuntu SMP");
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

TEST(Pseudonyms, SecretsButNotNumbersOfTokens) {
  Pseudonyms p;
  const std::string keep =
      "#token: 204440, token usage: 0.02, pad_token='<|end|>', num_tokens=4096, 12.5 tokens/s";
  EXPECT_EQ(hide(p, keep), keep);
  for (const char* secret : {"WANDB_API_KEY=8c1f0e00aa11bb22cc33dd44", "password: hunter2hunter2",
                             "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
                             "Authorization: Bearer abcdef123456", "https://bob:s3cretpw@github.com/x"}) {
    const std::string out = hide(p, secret);
    const std::string tail = std::string(secret).substr(std::string(secret).find_last_of("= ") + 1);
    EXPECT_EQ(out.find(tail), std::string::npos) << out;
  }
  EXPECT_EQ(hide(p, "https://bob:s3cretpw@github.com/x").find("s3cretpw"), std::string::npos);
}

TEST(Pseudonyms, HostsInLaunchersSchedulersAndUrls) {
  for (const char* line :
       {"[smc-gpu-03:29881] *** Process received signal ***",
        "smc-gpu-03:11:12 [3] transport/net_ib.cc:93 NCCL WARN x", "srun: error: smc-gpu-03: task 3: Exited",
        "ssh -p 22 bob@smc-gpu-03", "--rdzv_endpoint smc-gpu-03:29500",
        "on smc-gpu-03.prod.svc.cluster.local", "https://smc-gpu-03.example-bank.com:5000/v2",
        "Node:             smc-gpu-03/198.18.0.1"}) {
    Pseudonyms p;
    EXPECT_EQ(hide(p, line).find("smc-gpu-03"), std::string::npos) << hide(p, line);
  }
  Pseudonyms p;
  EXPECT_EQ(hide(p, "see https://github.com/NVIDIA/nccl"), "see https://github.com/NVIDIA/nccl");
}

TEST(Pseudonyms, WhatCloudsKnowUsBy) {
  Pseudonyms p;
  const std::string out = hide(p,
                               "arn:aws:eks:us-east-1:123456789012:cluster/moe i-0abcd1234ef567890 "
                               "projects/acme-ml-prod/zones/a s3://acme-ckpt/run7 --project acme-ml-prod");
  for (const char* word : {"123456789012", "0abcd1234ef567890", "acme-ml-prod", "acme-ckpt"})
    EXPECT_EQ(out.find(word), std::string::npos) << out;
}

TEST(Pseudonyms, DecimalGidsOfPerftestHoldTheAddress) {
  Pseudonyms p;
  EXPECT_EQ(hide(p, "GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:20:30:41\n"),
            "GID: 00:00:00:00:00:00:00:00:00:00:255:255:198:18:0:1\n");
  EXPECT_EQ(hide(p, "10.20.30.41"), "198.18.0.1");
}

}  // namespace
}  // namespace ep
