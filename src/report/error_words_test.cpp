#include "report/error_words.h"

#include <gtest/gtest.h>

namespace ep {
namespace {

TEST(ErrorWords, SentenceAndLabelAreTranslatedWordsOfOthersAreNot) {
  Error e{ErrorKind::absent,           "cannot open the host",       "x.snap",
          "No such file or directory", "epready snapshot -o x.snap", {"while comparing"}};
  EXPECT_EQ(error_text(e, Lang::en), e.text());
  EXPECT_EQ(error_text(e, Lang::zh),
            "无法打开主机描述: x.snap: No such file or directory\n  while comparing\n  下一步: epready "
            "snapshot -o x.snap");
}
TEST(ErrorWords, ANameStaysBehindItsSentence) {
  EXPECT_EQ(error_sentence("no sample is called moon", Lang::zh), "没有这个名字的样例：moon");
  EXPECT_EQ(error_sentence("cannot write to the moon", Lang::zh), "cannot write to the moon");
  EXPECT_EQ(error_sentence("nobody translated this", Lang::zh), "nobody translated this");
}

}  // namespace
}  // namespace ep
