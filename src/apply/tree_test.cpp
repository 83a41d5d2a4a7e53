#include "apply/tree.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "apply/test_bench.h"

namespace ep {
namespace {

using test::Bench;
using test::slurp;
using test::spill;

Entry file(std::string content, uint32_t mode = 0644) {
  Entry e;
  e.kind = Entry::Kind::file;
  e.mode = mode;
  e.uid = geteuid();
  e.gid = getegid();
  e.content = std::move(content);
  return e;
}

class TreeTest : public Bench {
 public:
  Tree tree() { return *Tree::open(root); }
};

TEST_F(TreeTest, WritesWithModeAndReadsBack) {
  ASSERT_TRUE(tree().write_file("/etc/x", file("hello\n", 0640)));
  auto e = tree().read("/etc/x");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->content, "hello\n");
  EXPECT_EQ(e->mode, 0640u);
}

TEST_F(TreeTest, WritersSideBySideNeverMixAndLeaveNothing) {
  Tree t = tree();
  std::atomic<int> failed{0};
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 50; ++i)
        if (!t.write_file("/etc/x", file(std::string(5000, char('a' + w))))) ++failed;
    });
  for (auto& w : writers) w.join();
  EXPECT_EQ(failed.load(), 0);
  std::string last = at("/etc/x");
  EXPECT_EQ(last, std::string(5000, last.at(0)));
  for (const auto& e : std::filesystem::directory_iterator(root + "/etc"))
    EXPECT_EQ(e.path().string().find("epready-new"), std::string::npos) << e.path();
}

TEST_F(TreeTest, LeavesNoScratchBehind) {
  ASSERT_TRUE(tree().write_file("/etc/x", file("1")));
  ASSERT_TRUE(tree().write_file("/etc/x", file("2")));
  int count = 0;
  for (const auto& e : std::filesystem::directory_iterator(root + "/etc")) count += e.is_regular_file();
  EXPECT_EQ(count, 1);
}

TEST_F(TreeTest, AbsoluteLinkOnTheWayStaysInsideTheRoot) {
  std::filesystem::create_directories(root + "/data");
  std::filesystem::create_symlink("/data", root + "/etc/sub");
  ASSERT_TRUE(tree().write_file("/etc/sub/x", file("in")));
  EXPECT_EQ(slurp(root + "/data/x"), "in");
}

TEST_F(TreeTest, LinkThatClimbsOutStopsAtTheRoot) {
  std::filesystem::create_symlink("../../../../../../tmp", root + "/etc/up");
  std::filesystem::create_directories(root + "/tmp");
  ASSERT_TRUE(tree().write_file("/etc/up/x", file("in")));
  EXPECT_EQ(slurp(root + "/tmp/x"), "in");
}

TEST_F(TreeTest, FinalLinkIsReplacedNotFollowed) {
  put("/victim", "secret");
  std::filesystem::create_symlink("/victim", root + "/etc/x");
  ASSERT_TRUE(tree().write_file("/etc/x", file("new")));
  EXPECT_EQ(at("/victim"), "secret");
  EXPECT_EQ(at("/etc/x"), "new");
}

TEST_F(TreeTest, RefusesToClimb) {
  auto r = tree().write_file("/etc/../../x", file(""));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::usage);
}

TEST_F(TreeTest, RefusesAFolderThatEverybodyCanWrite) {
  std::filesystem::create_directories(root + "/open");
  chmod((root + "/open").c_str(), 0777);
  auto r = tree().write_file("/open/x", file(""));
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().text().find("somebody else controls"), std::string::npos);
}

TEST_F(TreeTest, RefusesAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  std::filesystem::create_directories(root + "/home/eve/d");
  ASSERT_EQ(chown((root + "/home/eve").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(tree().write_file("/home/eve/d/x", file("")));
  std::filesystem::create_symlink("/etc", root + "/evil");
  ASSERT_EQ(lchown((root + "/evil").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(tree().write_file("/evil/x", file("")));
  EXPECT_FALSE(std::filesystem::exists(root + "/etc/x"));
}

TEST_F(TreeTest, LinkLoopEnds) {
  std::filesystem::create_symlink("/b", root + "/a");
  std::filesystem::create_symlink("/a", root + "/b");
  EXPECT_FALSE(tree().write_file("/a/x", file("")));
}

TEST_F(TreeTest, MissingFolderReadsAsAbsent) {
  auto e = tree().read("/no/such/place");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->kind, Entry::Kind::absent);
}

TEST_F(TreeTest, RemoveTreeDoesNotFollowLinks) {
  put("/keep/x", "x");
  put("/gone/sub/y", "y");
  std::filesystem::create_symlink(root + "/keep", root + "/gone/link");
  chmod((root + "/gone/sub").c_str(), 0500);
  ASSERT_TRUE(tree().remove_tree("/gone"));
  EXPECT_FALSE(std::filesystem::exists(root + "/gone"));
  EXPECT_EQ(at("/keep/x"), "x");
}

TEST_F(TreeTest, PublishSwapsAnOldFolderWhole) {
  put("/opt/old/a", "old");
  put("/opt/new/b", "new");
  ASSERT_TRUE(tree().publish("/opt/new", "/opt/old"));
  EXPECT_EQ(at("/opt/old/b"), "new");
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/old/a"));
  EXPECT_FALSE(std::filesystem::exists(root + "/opt/new"));
}

TEST_F(TreeTest, FullDiskIsSaidAndLeavesTheOldFile) {
  // /dev/full answers ENOSPC to every write; the message is made by os_failure, which this pins down.
  Error e = os_failure("cannot write", "/etc/x", ENOSPC).value();
  EXPECT_NE(e.next.find("free some space"), std::string::npos);
  EXPECT_EQ(os_failure("cannot write", "/etc/x", EROFS).value().exit_code(), 3);
}

}  // namespace
}  // namespace ep
