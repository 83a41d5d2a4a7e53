#include "verify/nodes.h"

#include <gtest/gtest.h>

using namespace ep;

TEST(Nodes, RunbookVariablesCountNodes) {
  auto n = nodes_of(
      {{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "10.0.0.5"}, {"MASTER_PORT", "29501"}}, {});
  ASSERT_TRUE(n) << n.error().text();
  EXPECT_EQ(n->count, 2);
  EXPECT_EQ(n->rank, 1);
  EXPECT_EQ(n->master, "10.0.0.5");
  EXPECT_EQ(n->port, 29501);
}

TEST(Nodes, FlagsBeatLaunchers) {
  NodeFlags f{4, 3, "first:1234"};
  auto n = nodes_of({{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "other"}, {"MASTER_PORT", "1"}}, f);
  ASSERT_TRUE(n);
  EXPECT_EQ(n->count, 4);
  EXPECT_EQ(n->rank, 3);
  EXPECT_EQ(n->master, "first");
  EXPECT_EQ(n->port, 1234);
}

TEST(Nodes, MasterForms) {
  for (auto [text, host, port] : {std::tuple{"h", "h", 29500},
                                  {"h:7", "h", 7},
                                  {"[fd00::1]:7", "fd00::1", 7},
                                  {"[fd00::1]", "fd00::1", 29500},
                                  {"fd00::1", "fd00::1", 29500}}) {
    auto n = nodes_of({}, {2, 0, text});
    ASSERT_TRUE(n) << text;
    EXPECT_EQ(n->master, host);
    EXPECT_EQ(n->port, port);
  }
  for (const char* bad : {"h:", "h:0", "h:x", "h:70000", ":5", "["}) {
    auto n = nodes_of({}, {2, 0, bad});
    EXPECT_FALSE(n) << bad;
  }
}

TEST(Nodes, SlurmAndOpenMpi) {
  auto n = nodes_of(
      {{"SLURM_NNODES", "4"}, {"SLURM_NODEID", "2"}, {"SLURM_JOB_NODELIST", "gpu[003-010,012],x"}}, {});
  ASSERT_TRUE(n) << n.error().text();
  EXPECT_EQ(n->count, 4);
  EXPECT_EQ(n->master, "gpu003");
  EXPECT_EQ(n->source, "Slurm");
  auto m = nodes_of({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"MASTER_ADDR", "a"}}, {});
  ASSERT_TRUE(m);
  EXPECT_EQ(m->source, "Open MPI");
}

TEST(Nodes, FirstSlurmHost) {
  EXPECT_EQ(first_slurm_host("n1"), "n1");
  EXPECT_EQ(first_slurm_host("n1,n2"), "n1");
  EXPECT_EQ(first_slurm_host("n[01-04]"), "n01");
  EXPECT_EQ(first_slurm_host("n[7]-ib,z"), "n7-ib");
  EXPECT_EQ(first_slurm_host("r[1-2]n[3-4]"), "");
  EXPECT_EQ(first_slurm_host("n[01"), "");
  EXPECT_EQ(first_slurm_host(""), "");
}

TEST(Nodes, WhatIsMissingIsAUsageErrorWithTheCommand) {
  using Map = std::map<std::string, std::string>;
  for (const auto& [env, flags] :
       {std::pair{Map{}, NodeFlags{}},
        {Map{{"WORLD_SIZE", "2"}}, NodeFlags{}},
        {Map{{"WORLD_SIZE", "2"}, {"RANK", "0"}}, NodeFlags{}},
        {Map{{"WORLD_SIZE", "two"}, {"RANK", "0"}, {"MASTER_ADDR", "a"}}, NodeFlags{}},
        {Map{{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"MASTER_ADDR", "a"}}, NodeFlags{}},
        {Map{{"WORLD_SIZE", "2"}, {"RANK", "2"}, {"MASTER_ADDR", "a"}}, NodeFlags{}},
        {Map{{"WORLD_SIZE", "16"}, {"RANK", "0"}, {"LOCAL_WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}},
         NodeFlags{}}}) {
    auto n = nodes_of(env, flags);
    ASSERT_FALSE(n);
    EXPECT_EQ(n.error().kind, ErrorKind::usage);
    EXPECT_NE(n.error().next.find("--node-rank"), std::string::npos);
  }
}
