#include "recipe/recipe.h"

#include <filesystem>
#include <fstream>

namespace ep {
namespace {

namespace fs = std::filesystem;

TEST(Recipe, EmbeddedDataIsWhole) {
  Recipe r;
  const auto errors = load_recipe_all("", {}, r);
  for (const auto& e : errors) ADD_FAILURE() << e.text();
  for (const char* id : {"v1-gcp-b200", "v1-gke-b200", "v1-hopper", "v1-blackwell", "v2-vllm", "v2-sglang",
                         "v25-plain", "local"})
    EXPECT_NE(r.stack(id), nullptr) << id;
  for (const char* id :
       {"bare-metal", "gcp-a3-ultra", "gcp-a4", "gke-cos-pod", "aws-efa", "azure-nd", "gb200", "build-host"})
    EXPECT_NE(r.platform(id), nullptr) << id;
  ASSERT_NE(r.component("deepep"), nullptr);
  EXPECT_EQ(r.component("deepep")->release("2.0.0+d4f41e4")->git_commit,
            "d4f41e4e93602a15e95f55f6ee8df8f1aaa0e4bb");
  EXPECT_GT(r.baselines.size(), 20u);
}

TEST(Recipe, OverrideFolderReplacesOneFileAndItsMistakesHaveLines) {
  const fs::path dir = fs::path(testing::TempDir()) / "ep_recipe_data";
  fs::create_directories(dir / "stacks");
  std::ofstream(dir / "stacks" / "local.toml") << "id = \"local\"\nlane = \"locl\"\nconsumer = [\"plain\"]\n";
  Recipe r;
  const auto errors = load_recipe_all(dir.string(), {}, r);
  fs::remove_all(dir);
  ASSERT_GE(errors.size(), 3u);
  bool lane = false, key = false;
  for (const auto& e : errors) {
    EXPECT_NE(e.where.find("stacks/local.toml:"), std::string::npos) << e.text();
    lane = lane || e.next == "did you mean \"local\"?";
    key = key || e.next == "did you mean \"consumers\"?";
  }
  EXPECT_TRUE(lane);
  EXPECT_TRUE(key);
}

TEST(Recipe, MissingFolderIsAbsentNotEmpty) {
  auto r = load_recipe("/nonexistent/data");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::absent);
}

TEST(Condition, ThreeAnswers) {
  Scope s;
  s["gpu.compute_capability"] = {true, true, "90", "nvidia-smi", {}};
  s["driver.version"] = {true, true, "580.95.05", "", {}};
  s["nic.driver"] = {false, false, "", "no permission", {}};
  s["cuda"] = {true, true, "12.9", "", {"sm100"}};
  s["nvshmem"] = {true, true, "3.5.19", "", {"cuda12"}};
  s["gone"] = {true, false, "", "", {}};
  const auto ask = [&](std::string_view text) {
    auto c = Condition::parse(text);
    EXPECT_TRUE(c) << text;
    return c->holds(s);
  };
  EXPECT_EQ(ask("gpu.compute_capability >= 90"), Truth::yes);
  EXPECT_EQ(ask("gpu.compute_capability >= 100"), Truth::no);
  EXPECT_EQ(ask("driver.version >= 580.65.06"), Truth::yes);
  EXPECT_EQ(ask("nvshmem >= 3.5.9"), Truth::yes);  // 19 > 9: numbers, not letters
  EXPECT_EQ(ask("nic.driver == mlx5_core"), Truth::unknown);
  EXPECT_EQ(ask("nic.driver == mlx5_core | cuda has sm100"), Truth::yes);
  EXPECT_EQ(ask("nic.driver == mlx5_core | cuda lacks sm100"), Truth::unknown);
  EXPECT_EQ(ask("nvshmem has cuda{cuda.major}"), Truth::yes);
  EXPECT_EQ(ask("nvshmem has cuda{nothing.major}"), Truth::unknown);
  EXPECT_EQ(ask("gone unset"), Truth::yes);
  EXPECT_EQ(ask("gone set"), Truth::no);
  EXPECT_EQ(ask("gone == x"), Truth::no);
  EXPECT_EQ(ask("gone != x"), Truth::yes);
  EXPECT_EQ(ask("nobody == x"), Truth::unknown);
  for (std::string_view bad : {"", "a", "a ==", "a ~ b", "a == b |", "a/b == c"})
    EXPECT_FALSE(Condition::parse(bad)) << bad;
}

}  // namespace
}  // namespace ep
