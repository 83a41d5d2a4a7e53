// Every problem of data/problems keeps the rules of the catalogue, and every fixture in test/problems is
// answered as its name says. Advice is printed, errors fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor/judge.h"
#include "doctor/problem_lint.h"
#include "recipe/data_files.h"

namespace ep {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

std::map<std::string, std::vector<Fixture>> all_fixtures() {
  namespace fs = std::filesystem;
  std::map<std::string, std::vector<Fixture>> out;
  const fs::path root = fs::path(EP_SOURCE_DIR) / "test/problems";
  for (const auto& kind : fs::directory_iterator(root)) {
    if (!kind.is_directory() || kind.path().filename() == "healthy") continue;
    for (const auto& f : fs::directory_iterator(kind.path())) {
      const std::string name = f.path().filename().string(), dir = kind.path().filename().string();
      if (name.rfind("hit", 0) != 0 && name.rfind("miss", 0) != 0) continue;
      // hits.log and misses.log hold several short logs, lines of three dashes between them.
      const std::string all = slurp(f.path());
      size_t from = 0;
      for (int n = 1; from <= all.size(); ++n) {
        const size_t cut = std::min(all.find("---\n", from), all.size());
        const bool one = name != "hits.log" && name != "misses.log";
        out[dir].push_back({"test/problems/" + dir + "/" + name + (one ? "" : "#" + std::to_string(n)),
                            one ? all : all.substr(from, cut - from)});
        from = one ? all.size() + 1 : cut + 4;
      }
    }
  }
  return out;
}

TEST(Problems, LoadWithoutAnyError) {
  auto files = data_files("problems", "");
  ASSERT_TRUE(files.has_value());
  std::vector<Error> errors;
  const Catalogue c = load_catalogue(*files, errors);
  for (const Error& e : errors) ADD_FAILURE() << e.text();
  EXPECT_GE(c.problems.size(), 3u);
}

TEST(Problems, KeepTheRulesAndAnswerTheirFixtures) {
  auto files = data_files("problems", "");
  ASSERT_TRUE(files.has_value());
  std::vector<Error> errors;
  const Catalogue c = load_catalogue(*files, errors);
  const auto fixtures = all_fixtures();
  ASSERT_FALSE(fixtures.empty());
  size_t advice = 0, shown = 0;
  for (const LintMark& m : lint_problems(c, fixtures)) {
    if (m.error)
      ADD_FAILURE() << m.where << ": " << m.text;
    else if (++advice <= 500)
      std::printf("advice: %s: %s\n", m.where.c_str(), m.text.c_str());
  }
  for (const auto& [kind, list] : fixtures) shown += list.size();
  std::printf("%zu problems, %zu fixtures, %zu pieces of advice\n", c.problems.size(), shown, advice);
}

TEST(Problems, HealthyLogsAreMetWithSilence) {
  namespace fs = std::filesystem;
  auto files = data_files("problems", "");
  ASSERT_TRUE(files.has_value());
  std::vector<Error> errors;
  const Catalogue c = load_catalogue(*files, errors);
  int count = 0;
  for (const auto& f : fs::directory_iterator(fs::path(EP_SOURCE_DIR) / "test/problems/healthy")) {
    Observed observed;
    std::vector<LogInput> logs;
    const std::string text = slurp(f.path());
    logs.push_back({f.path().filename().string(), read_text(text)});
    const LogEvidence evidence = read_logs(c, std::move(logs), observed);
    for (const Finding& x : judge(c, evidence, observed, Lang::en).findings)
      EXPECT_EQ(x.severity, Severity::info)
          << f.path() << ": " << x.code << " at line " << (x.evidence.empty() ? 0 : x.evidence[0].line);
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace ep
