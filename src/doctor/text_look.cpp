#include "doctor/text_look.h"

namespace ep {

namespace {

constexpr int64_t kSome = 16;  // fewer bytes say nothing about what a file is

struct Magic {
  std::string_view bytes;
  Unreadable what;
};
constexpr Magic kMagic[] = {
    {"\x1f\x8b", Unreadable::gzip},
    {"\x28\xb5\x2f\xfd", Unreadable::zstd},
    {"\xfd"
     "7zXZ",
     Unreadable::xz},
    {"BZh", Unreadable::bzip2},
    {"PK\x03\x04", Unreadable::zip},
    {"LPKSHHRH", Unreadable::journal},
    {"\x7f"
     "ELF",
     Unreadable::elf},
};

}  // namespace

void TextLook::at(std::string_view block) {
  if (head.size() < 16) head += block.substr(0, 16 - head.size());
  bytes += int64_t(block.size());
  int follow = 0;
  for (const char c : block) {
    const auto b = static_cast<unsigned char>(c);
    if (b >= 0x80) {
      ++high;
      if (follow > 0 && b < 0xc0) {
        if (--follow == 0) pairs += b >= 0x80;
        ++pairs;
      } else {
        follow = b >= 0xf0 && b < 0xf5 ? 3 : b >= 0xe0 && b < 0xf0 ? 2 : b >= 0xc2 && b < 0xe0 ? 1 : 0;
      }
      continue;
    }
    follow = 0;
    zeros += b == 0;
    controls += b != 0 && (b < 0x20 || b == 0x7f) && b != '\t' && b != '\n' && b != '\r' && b != 0x1b &&
                b != '\b' && b != '\f';
    letters += (b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') || (b >= '0' && b <= '9');
  }
}

Unreadable TextLook::verdict(bool utf16) const {
  for (const Magic& m : kMagic)
    if (bytes >= kSome && starts_with(head, m.bytes) && (controls > 0 || high > 0 || zeros > 0))
      return m.what;
  if (bytes == 0 || utf16) return Unreadable::no;
  if (letters == 0 && high == 0 && controls == 0 && zeros < bytes) return Unreadable::blank;
  // Noise between lines of text (a torn write, a table of bytes) is no reason to refuse the lines.
  const int64_t odd = controls + std::max<int64_t>(0, high - pairs - pairs / 2);
  const int64_t real = bytes - zeros;
  if (real == 0 || (bytes >= kSome && odd * 5 > real)) return Unreadable::binary;
  return Unreadable::no;
}

std::string unreadable_text(Unreadable what, const std::string& name, Lang lang) {
  const std::string file = shell_quote(name);
  const auto say = [&](std::string_view en, std::string_view zh, const std::string& command) {
    return name + std::string(lang == Lang::zh ? zh : en) + command;
  };
  switch (what) {
    case Unreadable::no:
      return {};
    case Unreadable::blank:
      return say(": holds blanks and marks only; collect the whole output of the run: ",
                 "：只有空白与标点；请收集完整输出：", "python3 ... 2>&1 | tee run.log");
    case Unreadable::gzip:
      return say(": is compressed; read it so: ", "：是压缩文件，请这样读取：",
                 "zcat " + file + " | epready doctor -");
    case Unreadable::zstd:
      return say(": is compressed; read it so: ", "：是压缩文件，请这样读取：",
                 "zstdcat " + file + " | epready doctor -");
    case Unreadable::xz:
      return say(": is compressed; read it so: ", "：是压缩文件，请这样读取：",
                 "xzcat " + file + " | epready doctor -");
    case Unreadable::bzip2:
      return say(": is compressed; read it so: ", "：是压缩文件，请这样读取：",
                 "bzcat " + file + " | epready doctor -");
    case Unreadable::zip:
      return say(": is an archive; read it so: ", "：是归档文件，请这样读取：",
                 "unzip -p " + file + " | epready doctor -");
    case Unreadable::journal:
      return say(": is a journal of systemd; read it so: ", "：是 systemd 日志文件，请这样读取：",
                 "journalctl --file " + file + " -o short-precise | epready doctor -");
    case Unreadable::elf:
      return say(": is a program or a core file; its backtrace can be read: ",
                 "：是程序或 core 文件，可读取其调用栈：",
                 "gdb -batch -ex 'thread apply all bt' PROGRAM " + file + " | epready doctor -");
    case Unreadable::binary:
      return say(": is no text; collect the output of the run instead: ", "：不是文本；请改为收集运行输出：",
                 "python3 ... 2>&1 | tee run.log");
  }
  return {};
}

}  // namespace ep
