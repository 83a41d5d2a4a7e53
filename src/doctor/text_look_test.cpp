#include "doctor/text_look.h"

#include <gtest/gtest.h>

#include <random>

namespace ep {
namespace {

Unreadable look(std::string_view text, bool utf16 = false) {
  TextLook l;
  l.at(text);
  return l.verdict(utf16);
}

TEST(TextLook, TextsAreTexts) {
  EXPECT_EQ(look("DeepEP error: timeout (dispatch CPU)\n"), Unreadable::no);
  EXPECT_EQ(look("\x1b[31mERROR\x1b[0m no GID\n"), Unreadable::no);
  EXPECT_EQ(look("两台机器之间 dispatch 超时，单机正常\n"), Unreadable::no);
  EXPECT_EQ(look("Erreur : p\xC3\xA9riph\xC3\xA9rique absent\n"), Unreadable::no);
  EXPECT_EQ(look("x"), Unreadable::no);
}

TEST(TextLook, NoiseBetweenLinesIsForgiven) {
  std::string text =
      "NCCL WARN something\n" + std::string(40, '\0') + "\x01\x02\x03 Traceback (most recent call last)\n";
  EXPECT_EQ(look(text), Unreadable::no);
}

TEST(TextLook, RandomBytesAreNoText) {
  std::mt19937 random(7);
  for (int run = 0; run < 20; ++run) {
    std::string bytes(4096, ' ');
    for (char& c : bytes) c = char(random() & 0xff);
    bytes[0] = 'a';
    EXPECT_EQ(look(bytes), Unreadable::binary);
  }
  EXPECT_EQ(look(std::string(4096, '\0')), Unreadable::binary);
}

TEST(TextLook, BlanksAreNoText) {
  EXPECT_EQ(look("\n\n   \t\n"), Unreadable::blank);
  EXPECT_EQ(look("---\n...\n"), Unreadable::blank);
}

TEST(TextLook, CompressedFilesAreNamed) {
  using namespace std::string_literals;
  const std::string rest(64, '\x91');
  EXPECT_EQ(look("\x1f\x8b\x08\0"s + rest), Unreadable::gzip);
  EXPECT_EQ(look("\x28\xb5\x2f\xfd"s + rest), Unreadable::zstd);
  EXPECT_EQ(look("LPKSHHRH"s + rest), Unreadable::journal);
  EXPECT_EQ(look("BZhere is a line of text that a person wrote\n"), Unreadable::no);
  EXPECT_NE(unreadable_text(Unreadable::gzip, "a b.gz", Lang::en).find("zcat 'a b.gz' | epready doctor -"),
            std::string::npos);
}

}  // namespace
}  // namespace ep
