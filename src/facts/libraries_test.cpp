// ELF files, the loader's cache, wheel records and a whole environment, from literal bytes; then the same
// bytes cut and bent.
#include "facts/libraries.h"

#include <gtest/gtest.h>

#include <random>

#include "facts/elf_for_test.h"
#include "host/snapshot.h"

namespace ep {
namespace {

using test::elf_file;
using test::fatbin;

ElfFile good(const std::string& file) {
  auto e = read_elf(bytes_of(file));
  EXPECT_TRUE(e) << (e ? "" : e.error().text());
  return e ? *e : ElfFile();
}

const std::string& sample() {
  static const std::string file =
      elf_file({"libx.so.2",
                {"libnccl.so.2", "libc.so.6"},
                "/opt/a:$ORIGIN/../b",
                "/r",
                "some text NCCL version 2.30.7+cuda13.3 more",
                fatbin({{2, 90}, {2, 100}, {1, 100}}) + std::string(8, '\0') + fatbin({{2, 120}})});
  return file;
}

TEST(Elf, ReadsNamesNeedsAndSearchPaths) {
  ElfFile e = good(sample());
  EXPECT_EQ(e.machine, 62);
  EXPECT_EQ(e.soname, "libx.so.2");
  EXPECT_EQ(e.needed, (std::vector<std::string>{"libnccl.so.2", "libc.so.6"}));
  EXPECT_EQ(e.runpath, (std::vector<std::string>{"/opt/a", "$ORIGIN/../b"}));
  EXPECT_EQ(e.rpath, std::vector<std::string>{"/r"});
  ASSERT_NE(e.section(".nv_fatbin"), nullptr);
}

TEST(Elf, ListsTheGpuCode) {
  GpuCode code = read_gpu_code(good(sample()), bytes_of(sample()));
  EXPECT_EQ(code.cubin, (std::set<int>{90, 100, 120}));
  EXPECT_EQ(code.ptx, std::set<int>{100});
  EXPECT_FALSE(code.cut);
  EXPECT_TRUE(code.serves(90));
  EXPECT_TRUE(code.serves(103)) << "a later minor of the same major";
  EXPECT_TRUE(code.serves(110)) << "by its PTX";
  EXPECT_FALSE(code.serves(89));
  EXPECT_FALSE(code.serves(80));
}

TEST(Elf, AVersionIsReadFromTheLibraryItself) {
  const std::string file =
      elf_file({"l", {}, "", "", std::string(5u << 20, 'x') + "NCCL version 2.27.0\0", ""});
  EXPECT_EQ(version_after(good(file), bytes_of(file), "NCCL version "), "2.27.0");
  EXPECT_EQ(version_after(good(file), bytes_of(file), "NVSHMEM v"), "");
  // A format string is no version.
  const std::string format =
      elf_file({"l", {}, "", "", std::string("NCCL version %s\0NCCL version 2.1.4\0", 35), ""});
  EXPECT_EQ(version_after(good(format), bytes_of(format), "NCCL version "), "2.1.4");
  // Across the border of two pieces.
  const std::string across =
      elf_file({"l", {}, "", "", std::string((4u << 20) - 7, '.') + "NCCL version 2.30.4\0", ""});
  EXPECT_EQ(version_after(good(across), bytes_of(across), "NCCL version "), "2.30.4");
}

TEST(Elf, OtherFilesAreNamedMalformed) {
  for (std::string text :
       {std::string(), std::string("hello"), std::string(200, '\0'), std::string(200, 'E')}) {
    auto e = read_elf(bytes_of(text));
    ASSERT_FALSE(e);
    EXPECT_EQ(e.error().kind, ErrorKind::malformed);
  }
  std::string other = sample();
  other[4] = 1;  // 32 bits
  EXPECT_FALSE(read_elf(bytes_of(other)));
}

// Whatever the bytes: an answer or an error, in bounded time and memory.
TEST(Elf, CutAndBentFilesNeverHurt) {
  const std::string& whole = sample();
  size_t refused = 0;
  for (size_t n = 0; n < whole.size(); ++n) {
    const std::string cut = whole.substr(0, n);
    auto e = read_elf(bytes_of(cut));
    if (e) read_gpu_code(*e, bytes_of(cut));
    refused += !e;
  }
  EXPECT_EQ(refused, whole.size()) << "the section table stands at the end: every cut is seen";
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bent = whole;
    for (int k = 0; k < 1 + i % 8; ++k) bent[random() % bent.size()] = char(random());
    auto e = read_elf(bytes_of(bent));
    if (!e) continue;
    read_gpu_code(*e, bytes_of(bent));
    version_after(*e, bytes_of(bent), "NCCL version ");
  }
}

TEST(Elf, ACutFatbinIsSaid) {
  std::string f = fatbin({{2, 90}, {2, 100}});
  f[8] = char(0xff);  // claims more than there is
  f[9] = char(0xff);
  const std::string file = elf_file({"l", {}, "", "", "", f});
  EXPECT_TRUE(read_gpu_code(good(file), bytes_of(file)).cut);
}

std::string ld_cache(const std::vector<CachedLibrary>& libraries) {
  std::string strings, table;
  const size_t base = 48 + 24 * libraries.size();
  for (const auto& l : libraries) {
    test::put<int32_t>(table, 0x303);
    test::put<uint32_t>(table, uint32_t(base + strings.size()));
    strings += l.name + '\0';
    test::put<uint32_t>(table, uint32_t(base + strings.size()));
    strings += l.path + '\0';
    test::put<uint32_t>(table, 0);
    test::put<uint64_t>(table, 0);
  }
  std::string out = "glibc-ld.so.cache1.1";
  test::put<uint32_t>(out, uint32_t(libraries.size()));
  test::put<uint32_t>(out, uint32_t(strings.size()));
  out.resize(48, '\0');
  return out + table + strings;
}

TEST(LdCache, NewFormatAloneAndBehindTheOldOne) {
  const std::string cache =
      ld_cache({{"libnccl.so.2", "/usr/lib/libnccl.so.2"}, {"libz.so", "/lib/libz.so"}});
  for (const std::string& text : {cache, "ld.so-1.7.0" + std::string(17, '\0') + cache}) {
    auto got = parse_ld_cache(text);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].name, "libnccl.so.2");
    EXPECT_EQ(got[1].path, "/lib/libz.so");
  }
  for (size_t n = 0; n < cache.size(); ++n) parse_ld_cache(cache.substr(0, n));
  EXPECT_TRUE(parse_ld_cache("nothing of the kind").empty());
}

TEST(Record, RowsWithAndWithoutQuotes) {
  auto rows = parse_record("a/b.py,sha256=xyz,12\n\"odd, \"\"name\"\".txt\",sha256=q,3\nRECORD,,\n\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].path, "a/b.py");
  EXPECT_EQ(rows[0].size, 12u);
  EXPECT_EQ(rows[1].path, "odd, \"name\".txt");
  EXPECT_EQ(rows[1].hash, "sha256=q");
  EXPECT_EQ(rows[2].size, 0u);
}

// ---- one environment, as pip lays it out ----
constexpr const char* kSite = "/v/lib/python3.12/site-packages";

void wheel(SnapshotData& d, const std::string& name, const std::string& version,
           const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string info = std::string(kSite) + "/" + name + "-" + version + ".dist-info";
  std::string record;
  for (const auto& [path, content] : files) {
    d.file(std::string(kSite) + "/" + path, content);
    record += path + ",sha256=" + std::to_string(std::hash<std::string>{}(content)) + "," +
              std::to_string(content.size()) + "\n";
  }
  d.file(info + "/METADATA", "Name: " + name + "\nVersion: " + version + "\n");
  d.file(info + "/RECORD", record);
}

std::string nccl(const std::string& version) {
  return elf_file({"libnccl.so.2", {}, "", "", "NCCL version " + version + std::string(1, '\0'), ""});
}

SnapshotData environment() {
  SnapshotData d;
  d.complete = true;
  d.file("/v/bin/python3", "");
  d.file("/v/pyvenv.cfg", "version = 3.12.1\n");
  wheel(
      d, "torch", "2.13.0",
      {{"torch/lib/libtorch_cuda.so", elf_file({"libtorch_cuda.so",
                                                {"libnccl.so.2", "libcudart.so.13"},
                                                "",
                                                "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../nvidia/cu13/lib",
                                                "",
                                                ""})}});
  wheel(d, "nvidia_nccl_cu13", "2.30.7", {{"nvidia/nccl/lib/libnccl.so.2", nccl("2.30.7+cuda13.3")}});
  d.file(std::string(kSite) + "/nvidia/nccl/include/nccl.h",
         "#define NCCL_MAJOR 2\n#define NCCL_MINOR 30\n#define NCCL_PATCH 7\n");
  wheel(d, "nvidia_cuda_runtime", "13.0.96",
        {{"nvidia/cu13/lib/libcudart.so.13", elf_file({"libcudart.so.13", {}, "", "", "", ""})}});
  wheel(d, "sgl_deep_ep", "0.1.2",
        {{"deep_ep/__init__.py", "from .buffers.elastic import ElasticBuffer, EPHandle\n"},
         {"deep_ep/_C.cpython-312-x86_64-linux-gnu.so", elf_file({"",
                                                                  {"libnccl.so.2", "libcuda.so.1"},
                                                                  "/opt/python/site/nvidia/nccl/lib",
                                                                  "",
                                                                  "",
                                                                  fatbin({{2, 90}})})}});
  return d;
}

LibraryFacts read(const SnapshotData& d) {
  auto host = host_of(d, "test");
  Facts f = read_facts(*host);
  return read_libraries(*host, read_environment_at(*host, "/v"), f);
}

TEST(Libraries, OwnersVersionsAndWhatTheLoaderTakes) {
  LibraryFacts l = read(environment());
  ASSERT_EQ(l.copies.size(), 3u);
  const LibraryCopy* c = l.at(std::string(kSite) + "/nvidia/nccl/lib/libnccl.so.2");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->wheel, "nvidia-nccl-cu13");
  EXPECT_EQ(c->version.value_or(""), "2.30.7+cuda13.3");
  EXPECT_EQ(c->header_version.value_or(""), "2.30.7");
  EXPECT_EQ(c->cuda_major, 13);
  EXPECT_EQ(c->size, c->recorded_size);
  EXPECT_EQ(l.torch_cuda_major.value_or(0), 13);
  EXPECT_EQ(l.vllm_nccl, c->path);
  EXPECT_TRUE(l.elastic_buffer.value_or(false));
  EXPECT_FALSE(l.buffer.value_or(true)) << "ElasticBuffer is another word";
  EXPECT_EQ(l.deepep_wheel, "sgl-deep-ep");
  ASSERT_EQ(l.deepep.size(), 2u);
  EXPECT_EQ(l.deepep[0].path, c->path) << "torch brought it in before";
  EXPECT_NE(l.deepep[0].first, l.deepep[0].object);
  EXPECT_EQ(l.deepep[1].path, "") << "the driver's library is not here";
}

TEST(Libraries, LdLibraryPathBeatsRunpathAndNotRpath) {
  SnapshotData d = environment();
  d.file("/other/libnccl.so.2", nccl("2.20.5+cuda12.2"));
  d.environment["LD_LIBRARY_PATH"] = "/other";
  EXPECT_EQ(read(d).vllm_nccl, std::string(kSite) + "/nvidia/nccl/lib/libnccl.so.2") << "torch has an RPATH";
  d.file(std::string(kSite) + "/torch/lib/libtorch_cuda.so",
         elf_file({"libtorch_cuda.so", {"libnccl.so.2"}, "$ORIGIN/../../nvidia/nccl/lib", "", "", ""}));
  LibraryFacts l = read(d);
  EXPECT_EQ(l.vllm_nccl, "/other/libnccl.so.2");
  ASSERT_FALSE(l.torch.empty());
  EXPECT_EQ(l.torch[0].how, "LD_LIBRARY_PATH");
  d.environment["LD_PRELOAD"] = "/third/libnccl.so.2";
  d.file("/third/libnccl.so.2", nccl("2.19.3+cuda12.2"));
  EXPECT_EQ(read(d).vllm_nccl, "/third/libnccl.so.2");
}

TEST(Libraries, TheCacheIsAskedLast) {
  SnapshotData d = environment();
  d.nodes.erase(std::string(kSite) + "/nvidia/nccl/lib/libnccl.so.2");
  d.file("/usr/lib/x/libnccl.so.2.30.4", nccl("2.30.4+cuda13.0"));
  d.link("/usr/lib/x/libnccl.so.2", "libnccl.so.2.30.4");
  d.file("/etc/ld.so.cache", ld_cache({{"libnccl.so.2", "/usr/lib/x/libnccl.so.2"}}));
  LibraryFacts l = read(d);
  EXPECT_EQ(l.vllm_nccl, "/usr/lib/x/libnccl.so.2.30.4");
  ASSERT_FALSE(l.torch.empty());
  EXPECT_EQ(l.torch[0].how, "ld.so.cache");
}

TEST(Libraries, TwoWheelsThatClaimOneFile) {
  SnapshotData d = environment();
  wheel(d, "nvidia_nccl_cu12", "2.27.5", {{"nvidia/nccl/lib/libnccl.so.2", nccl("2.27.5+cuda12.9")}});
  LibraryFacts l = read(d);
  ASSERT_EQ(l.clashes.size(), 1u);
  EXPECT_EQ(l.clashes[0].wheels.size(), 2u);
  EXPECT_FALSE(l.clashes[0].same_bytes);
}

}  // namespace
}  // namespace ep
