// Snapshots: what is written reads back as it was, the recorder answers as the host did, damaged or hostile
// ones are refused by name and line.
#include "host/snapshot.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/text.h"
#include "host/recorder.h"

namespace ep {
namespace {

namespace fs = std::filesystem;

// A scratch folder that goes away.
struct Scratch {
  std::string path;
  Scratch() : path(testing::TempDir() + "snapshot_test.XXXXXX") { EXPECT_TRUE(mkdtemp(path.data())); }
  ~Scratch() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + "/" + name; }
};

SnapshotData small_host() {
  SnapshotData d;
  d.tool = "epready test";
  d.time = "2026-11-30T10:00:00Z";
  d.add("/", FileInfo::Type::directory);
  d.file("/sys/devices/pci0000:00/0000:00:01.0/vendor", "0x10de\n");
  d.file("/sys/devices/pci0000:00/0000:00:01.0/odd name%", std::string("a\0b\n\xff", 5));
  d.file("/etc/empty", "");
  d.link("/sys/bus/pci/devices/0000:00:01.0", "../../../devices/pci0000:00/0000:00:01.0");
  d.link("/usr/local/cuda", "/usr/local/cuda-12.9");
  d.directory("/usr/local/cuda-12.9");
  d.nodes["/usr/local/cuda-12.9"].more = {"bin", "lib64"};
  d.add("/proc/driver/nvidia/params", FileInfo::Type::file).no_read =
      Trouble{ErrorKind::unreadable, "EACCES (Permission denied)"};
  d.add("/dev/gdrdrv", FileInfo::Type::other).info = FileInfo{FileInfo::Type::other, 0666, 0, true, true};
  d.add("/root", FileInfo::Type::directory).no_list =
      Trouble{ErrorKind::unreadable, "EACCES (Permission denied)"};
  d.absent.insert("/proc/driver/nvidia/version");
  d.space["/dev/shm"] = {64u << 20, 1u << 20, "tmpfs"};
  d.no_space["/opt"] = {ErrorKind::absent, "No such file or directory"};
  d.environment["NCCL_DEBUG"] = "INFO\nWARN";
  d.probe("uname", "x86_64\n");
  d.probe("nvidia-smi", "", 9, "NVIDIA-SMI has failed\nbecause\n");
  d.probes["rpm"].why = "program not found";
  return d;
}

// Equality by the one-file form: it holds everything.
void expect_same(const SnapshotData& a, const SnapshotData& b) {
  EXPECT_EQ(to_snap_text(a), to_snap_text(b));
}

TEST(Snapshot, EveryFormReadsBackAsWritten) {
  Scratch scratch;
  auto d = small_host();
  for (std::string form : {"folder", "one.snap", "packed.tar.gz", "plain.tar"}) {
    auto ok = write_snapshot(d, scratch / form);
    ASSERT_TRUE(ok) << ok.error().text();
    struct stat st {};
    ASSERT_EQ(stat((scratch / form).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 077, 0u) << form << " is private";
    auto back = read_snapshot(scratch / form);
    ASSERT_TRUE(back) << form << ": " << back.error().text();
    expect_same(d, *back);
    EXPECT_EQ(write_snapshot(d, scratch / form).error().kind, ErrorKind::usage) << "never overwritten";
  }
  size_t entries = 0;
  for (auto& e : fs::directory_iterator(scratch.path)) entries += !e.path().empty();
  EXPECT_EQ(entries, 4u) << "no scratch left behind";
}

TEST(Snapshot, GeneratedTreesReadBack) {
  Scratch scratch;
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    SnapshotData d;
    d.add("/", FileInfo::Type::directory);
    std::vector<std::string> folders{""};
    for (int i = 0; i < 30; ++i) {
      std::string name =
          std::string(1, char('a' + random() % 26)) + std::to_string(i) + (random() % 4 ? "" : " %\n\x01");
      std::string path = folders[random() % folders.size()] + "/" + name;
      switch (random() % 4) {
        case 0: {
          std::string bytes;
          for (int n = int(random() % 300); n-- > 0;) bytes += char(random());
          d.file(path, bytes);
          break;
        }
        case 1:
          d.file(path, "plain line " + std::to_string(i) + "\n");
          break;
        case 2:
          d.link(path, "../x y%/" + name);
          break;
        default:
          d.add(path, FileInfo::Type::directory).listed = random() % 2;
          folders.push_back(path);
      }
    }
    auto text = to_snap_text(d);
    auto back = from_snap_text(text, "generated");
    ASSERT_TRUE(back) << back.error().text();
    expect_same(d, *back);
    if (round % 10) continue;
    std::string folder = scratch / std::to_string(round);
    ASSERT_TRUE(write_snapshot(d, folder));
    back = read_snapshot(folder);
    ASSERT_TRUE(back) << back.error().text();
    expect_same(d, *back);
  }
}

TEST(Snapshot, AnswersAbsentRefusedAndNotCapturedApart) {
  auto host = host_of(small_host(), "x");
  EXPECT_EQ(host->kind(), HostKind::snapshot);
  EXPECT_EQ(*host->read("/sys/bus/pci/devices/0000:00:01.0/vendor"), "0x10de\n");
  EXPECT_EQ(*host->read("/sys/bus/pci/devices/0000:00:01.0/vendor", 4), "0x10");
  EXPECT_EQ(*host->link("/usr/local/cuda"), "/usr/local/cuda-12.9");
  EXPECT_EQ(host->read("/proc/driver/nvidia/version").error().kind, ErrorKind::absent);
  EXPECT_EQ(host->read("/proc/driver/nvidia/version/below").error().kind, ErrorKind::absent);
  EXPECT_EQ(host->read("/proc/driver/nvidia/params").error().why, "EACCES (Permission denied)");
  EXPECT_EQ(host->read("/usr/local/cuda/bin").error().why, kNotCaptured);
  EXPECT_EQ(host->read("/usr/local/cuda/bin/nvcc").error().why, kNotCaptured);
  EXPECT_EQ(host->read("/usr/local/cuda/nothing").error().kind, ErrorKind::absent) << "the folder was listed";
  EXPECT_EQ(host->read("/never/asked").error().why, kNotCaptured);
  EXPECT_EQ(host->read("/etc/empty/below").error().kind, ErrorKind::absent);
  EXPECT_EQ(*host->list("/usr/local/cuda"), (std::vector<std::string>{"bin", "lib64"}));
  EXPECT_EQ(host->list("/root").error().kind, ErrorKind::unreadable);
  EXPECT_TRUE(host->info("/dev/gdrdrv")->writable);
  EXPECT_EQ(host->space("/dev/shm")->type, "tmpfs");
  EXPECT_EQ(host->probe("nvidia-smi").exit_code, 9);
  EXPECT_FALSE(host->probe("rpm").found);
  EXPECT_EQ(host->probe("git-version").why, kNotCaptured);
}

TEST(Snapshot, LinksLoopAndClimbSafely) {
  SnapshotData d;
  d.complete = true;
  d.link("/a", "b");
  d.link("/b", "a");
  d.link("/up", "../../../../etc/x");
  d.file("/etc/x", "inside\n");
  d.link("/dangling", "/nowhere");
  auto host = host_of(d, "x");
  EXPECT_EQ(host->read("/a").error().kind, ErrorKind::unreadable);
  EXPECT_EQ(*host->read("/up"), "inside\n");
  EXPECT_EQ(host->info("/dangling")->type, FileInfo::Type::link);
  EXPECT_EQ(host->read("/dangling").error().kind, ErrorKind::absent);
}

// A folder tree stands in for a machine: the live host below a root, recorded, answers the same afterwards.
TEST(Recorder, RepeatsWhatTheHostSaid) {
  Scratch scratch;
  std::string root = scratch / "machine";
  fs::create_directories(root + "/sys/devices/d0");
  fs::create_directories(root + "/etc/many");
  std::ofstream(root + "/sys/devices/d0/state") << "4: ACTIVE\n";
  std::ofstream(root + "/etc/many/a") << "1";
  std::ofstream(root + "/etc/many/b") << "2";
  fs::create_symlink("../devices/d0", root + "/sys/class");
  fs::create_symlink("/etc/many", root + "/absolute");
  fs::create_symlink("nowhere", root + "/dangling");
  auto live = live_host(root);
  Recorder recorder(*live);
  auto ask = [](const Host& h) {
    std::string out;
    auto say = [&](const auto& r, auto show) {
      out += r ? show(*r) + "\n" : std::string(to_string(r.error().kind)) + " " + r.error().why + "\n";
    };
    auto text = [](const std::string& s) { return s; };
    auto names = [](const std::vector<std::string>& v) { return join(v, ","); };
    auto info = [](const FileInfo& i) {
      return std::to_string(int(i.type)) + std::to_string(i.size) + (i.writable ? "w" : "");
    };
    say(h.read("/sys/class/state"), text);
    say(h.read("/sys/class"), text);
    say(h.read("/absolute/a"), text);
    say(h.read("/nothing/here"), text);
    say(h.list("/etc"), names);
    say(h.list("/absolute"), names);
    say(h.list("/sys/class/state"), names);
    say(h.list("/gone"), names);
    say(h.link("/sys/class"), text);
    say(h.link("/etc"), text);
    say(h.link("/dangling"), text);
    say(h.info("/dangling"), info);
    say(h.info("/absolute/b"), info);
    say(h.info("/etc"), info);
    say(h.read("/dangling"), text);
    return out;
  };
  std::string first = ask(recorder);
  EXPECT_EQ(first, ask(*live));
  std::ofstream(root + "/sys/devices/d0/state") << "1: DOWN\n";
  EXPECT_EQ(ask(recorder), first) << "the first answer stands";
  auto data = recorder.data();
  ASSERT_TRUE(write_snapshot(data, scratch / "snap"));
  auto back = read_snapshot(scratch / "snap");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(ask(*host_of(*back, "snap")), first);
}

TEST(Live, OddFilesAreRefusedNotOpened) {
  Scratch scratch;
  ASSERT_EQ(mkfifo((scratch / "fifo").c_str(), 0600), 0);
  std::ofstream(scratch / "big") << std::string(100000, 'x');
  auto live = live_host("/");
  EXPECT_EQ(live->read(scratch / "fifo").error().why, "not a regular file");
  EXPECT_EQ(live->read(scratch.path).error().why, "Is a directory");
  EXPECT_EQ(live->read(scratch / "big", 10)->size(), 10u);
  EXPECT_EQ(live->read(scratch / "big")->size(), 100000u);
  EXPECT_EQ(live->read(scratch / "big/below").error().kind, ErrorKind::absent);
  EXPECT_TRUE(live->read("/proc/self/status"));
}

// ---- damaged and hostile ----

std::string where_of(const std::string& text) {
  auto d = from_snap_text(text, "x.snap");
  EXPECT_FALSE(d) << text;
  return d ? "" : d.error().where + ": " + d.error().why;
}

TEST(Snapshot, DamageIsNamedWithItsLine) {
  const std::string manifest = "{\"schema\":\"epready-snapshot-1\"}";
  const std::string head =
      "epready-snapshot 1\nmanifest " + std::to_string(manifest.size()) + "\n" + manifest + "\n";
  EXPECT_TRUE(from_snap_text(head + "end\n", "x"));
  EXPECT_TRUE(starts_with(where_of(""), "x.snap:0"));
  EXPECT_TRUE(starts_with(where_of("something else\n"), "x.snap:1"));
  EXPECT_EQ(where_of(head), "x.snap:4: cut short: no \"end\"");
  EXPECT_EQ(where_of(head + "file /a 10\nshort\nend\n"), "x.snap:4: cut short: 10 bytes announced, 10 left");
  EXPECT_TRUE(contains(where_of(head + "file /a 2\nshort\nend\n"), "x.snap:4: no newline after 2 bytes"));
  EXPECT_TRUE(contains(where_of(head + "file /a -1\n\nend\n"), "not a size"));
  EXPECT_TRUE(contains(where_of(head + "file /a 99999999999\n\nend\n"), "more than a snapshot may hold"));
  EXPECT_TRUE(contains(where_of(head + "text /a/../b x\nend\n"), "not a canonical absolute path"));
  EXPECT_TRUE(contains(where_of(head + "text a x\nend\n"), "not a canonical absolute path"));
  EXPECT_TRUE(contains(where_of(head + "text /a%2fb%zz x\nend\n"), "not a canonical absolute path"));
  EXPECT_TRUE(contains(where_of(head + "text /a x\ntext /a y\nend\n"), "x.snap:5: /a is given twice"));
  EXPECT_TRUE(contains(where_of(head + "text /a/b x\nlink /a c\nend\n"), "not a folder"));
  EXPECT_TRUE(contains(where_of(head + "text /a x\ntext /a/b y\nend\n"), "/a is given as a folder and"));
  EXPECT_TRUE(contains(where_of(head + "link /a c\ntext /a/b y\nend\n"), "/a is given as a folder and"));
  EXPECT_TRUE(contains(where_of(head + std::string("link /a \t\0x\nend\n", 16)), "a link needs a target"));
  EXPECT_TRUE(contains(where_of(head + "link /a %00\nend\n"), "a link needs a target"));
  EXPECT_TRUE(contains(where_of(head + "noise\nend\n"), "not a record"));
  EXPECT_TRUE(contains(where_of(head + "probe p 0 0\n\n\nend\n"), "not in the manifest"));
  EXPECT_TRUE(contains(where_of(head + "end\nmore\n"), "something follows"));
  EXPECT_TRUE(contains(where_of("epready-snapshot 1\nend\n"), "no manifest"));
  EXPECT_TRUE(contains(where_of("epready-snapshot 1\nmanifest 3\n{]}\nend\n"), "x.snap:2"));
}

TEST(Snapshot, EveryTruncationIsAnError) {
  std::string text = to_snap_text(small_host());
  for (size_t n = 0; n < text.size(); n += 1 + n / 50)
    EXPECT_FALSE(from_snap_text(text.substr(0, n), "cut")) << n;
}

TEST(Snapshot, HostileManifestsAreRefused) {
  auto reject = [](const std::string& json) {
    SnapshotData d;
    auto ok = from_manifest(json, "m", d);
    EXPECT_FALSE(ok) << json;
    return ok ? "" : ok.error().why;
  };
  const std::string s = "{\"schema\":\"epready-snapshot-1\",";
  EXPECT_TRUE(contains(reject("{\"schema\":\"other\"}"), "schema"));
  reject("[]");
  reject("{}");
  reject(s + "\"listed\":[\"/a/../b\"]}");
  reject(s + "\"listed\":\"/a\"}");
  reject(s + "\"absent\":[1]}");
  reject(s + "\"info\":{\"/a\":\"file 999 1 rw\"}}");
  reject(s + "\"info\":{\"/a\":7}}");
  reject(s + "\"more\":{\"/a\":[\"../x\"]}}");
  reject(s + "\"space\":{\"/\":{\"total\":-1,\"free\":2}}}");
  reject(s + "\"probes\":{\"x\":{\"found\":1}}}");
  reject(s + "\"no_read\":{\"/a\":[\"failed\",\"x\"]}}");
  reject(s + "\"complete\":1}");
  reject(std::string(100000, '['));
}

TEST(Snapshot, HostileFoldersAndArchivesAreRefused) {
  Scratch scratch;
  const std::string manifest = "{\"schema\":\"epready-snapshot-1\"}\n";
  auto folder = [&](const std::string& name) {
    fs::create_directories(scratch / name + "/root/a");
    std::ofstream(scratch / name + "/manifest.json") << manifest;
    return scratch / name;
  };
  EXPECT_TRUE(read_snapshot(folder("good")));
  // A link out of root is only a link: what it names is looked for inside.
  std::string out = folder("out");
  fs::create_symlink("/etc", out + "/root/etc");
  fs::create_symlink("../../../../../../../etc/passwd", out + "/root/passwd");
  auto data = read_snapshot(out);
  ASSERT_TRUE(data);
  auto host = host_of(*data, out);
  EXPECT_FALSE(host->read("/etc/passwd"));
  EXPECT_FALSE(host->read("/passwd"));
  // root itself a link, a manifest that is a link, a pipe, a huge file
  std::string linked = folder("linked");
  fs::remove_all(linked + "/root");
  fs::create_symlink("/", linked + "/root");
  EXPECT_FALSE(read_snapshot(linked));
  std::string swapped = folder("swapped");
  fs::remove(swapped + "/manifest.json");
  fs::create_symlink("/etc/passwd", swapped + "/manifest.json");
  EXPECT_FALSE(read_snapshot(swapped));
  std::string piped = folder("piped");
  ASSERT_EQ(mkfifo((piped + "/root/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(read_snapshot(piped).error().why, "not a plain file"));
  std::string huge = folder("huge");
  std::ofstream(huge + "/root/big").close();
  fs::resize_file(huge + "/root/big", kMaxSnapshotFileBytes + 1);
  EXPECT_TRUE(contains(read_snapshot(huge).error().why, "more than a snapshot may hold"));
  // archives
  auto pack = [&](const std::string& name, const std::string& args) {
    EXPECT_EQ(system(("cd " + scratch.path + " && tar -czPf " + name + " " + args + " 2>/dev/null").c_str()),
              0);
    return read_snapshot(scratch / name);
  };
  EXPECT_TRUE(pack("fine.tar.gz", "good"));
  EXPECT_TRUE(contains(pack("abs.tar.gz", "/etc/hostname good").error().why, "absolute path"));
  EXPECT_TRUE(contains(pack("up.tar.gz", "good/../good/manifest.json good").error().why, "leaves it"));
  EXPECT_TRUE(contains(pack("pipe.tar.gz", "piped").error().why, "something else"));
  EXPECT_TRUE(contains(pack("none.tar.gz", "good/root").error().why, "manifest.json"));
  std::ofstream(scratch / "cut.tar.gz") << "\x1f\x8b\x08 nothing";
  EXPECT_EQ(read_snapshot(scratch / "cut.tar.gz").error().kind, ErrorKind::malformed);
  EXPECT_EQ(read_snapshot(scratch / "no-such").error().kind, ErrorKind::absent);
}

TEST(Snapshot, NothingInsideAFileOrBehindALink) {
  Scratch scratch;
  SnapshotData d;
  d.add("/", FileInfo::Type::directory);
  d.file("/a/b", "x\n");
  d.nodes["/a"].type = FileInfo::Type::link;
  d.nodes["/a"].target = scratch.path;
  EXPECT_EQ(write_snapshot(d, scratch / "bad").error().kind, ErrorKind::malformed);
  EXPECT_FALSE(fs::exists(scratch / "b"));
}

TEST(Snapshot, AFailingWriteLeavesNothing) {
  auto d = small_host();
  EXPECT_FALSE(write_snapshot(d, "/no/such/place/snap"));
  EXPECT_FALSE(write_snapshot(d, "/proc/snap"));
}

}  // namespace
}  // namespace ep
