// The bytes of a log on their way to the scan: the encoding guessed, UTF-16 turned into UTF-8, a buffer that
// is filled at its end and emptied at its front, escape sequences taken out, lines counted. Finds nothing
// itself.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace ep {

enum class Encoding { bytes, utf16_le, utf16_be };

/// By byte order mark, or by NULs standing at nearly all even or odd places of the beginning.
Encoding guess_encoding(std::string_view start);

/// UTF-16 to UTF-8, block by block. Unpaired surrogates become U+FFFD.
class Utf16 {
 public:
  explicit Utf16(bool big) : big_(big) {}
  void decode(const char* data, size_t n, std::string* out);

 private:
  void unit(uint32_t u, std::string* out);
  bool big_, have_ = false;
  unsigned char low_ = 0;
  uint32_t high_ = 0;
};

/// Where the line, or piece of a line between carriage returns, that holds `at` begins and ends; looked for
/// in [least, most).
size_t piece_begin(const char* text, size_t at, size_t least);
size_t piece_end(const char* text, size_t at, size_t most);

int64_t count_newlines(const char* from, const char* to);

struct Oddities {
  bool nul = false, escape = false;
};
Oddities find_oddities(const char* from, const char* to);

/// Escape sequences out of every line (or piece between carriage returns) that holds one, as strip_ansi()
/// does; in place. Returns the size that is left.
size_t strip_ansi_lines(char* text, size_t size);

/// The text in hand: filled at its end, emptied at its front. Bytes go in without a copy in between.
class TextBuffer {
 public:
  explicit TextBuffer(size_t capacity) : capacity_(capacity), data_(new char[capacity]) {}
  char* data() { return data_.get(); }
  size_t size() const { return size_; }
  char* room(size_t n) {
    if (size_ + n > capacity_) {
      capacity_ = 2 * (size_ + n);
      std::unique_ptr<char[]> more(new char[capacity_]);
      std::memcpy(more.get(), data_.get(), size_);
      data_ = std::move(more);
    }
    return data_.get() + size_;
  }
  void added(size_t n) { size_ += n; }
  void drop_front(size_t n) {
    size_ -= n;
    std::memmove(data_.get(), data_.get() + n, size_);
  }

 private:
  size_t size_ = 0, capacity_;
  std::unique_ptr<char[]> data_;
};

}  // namespace ep
