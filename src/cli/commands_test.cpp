#include <set>

#include "base/embedded.h"
#include "cli/command.h"

using namespace ep;

TEST(Commands, NamesAreUniqueSummariesShortAndPagesThere) {
  std::set<std::string> names;
  for (const auto& row : commands()) {
    const std::string name = row.name;
    EXPECT_TRUE(names.insert(name).second) << name << " stands twice in the table";
    EXPECT_LE(row.summary.en.size(), 80u) << name;
    EXPECT_FALSE(row.summary.zh.empty()) << name;
    const std::string page = replace_all(name, " ", "-") + ".md";
    EXPECT_TRUE(embedded("docs/commands/" + page)) << page;
    EXPECT_TRUE(embedded("docs/zh/commands/" + page)) << page;
    EXPECT_NE(row.make(), nullptr) << name;
  }
  EXPECT_GE(names.size(), 25u);
}
