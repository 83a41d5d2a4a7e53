// A writer for small JSON documents: objects, arrays, strings, numbers, in the order of the calls. It writes
// and never reads; numbers keep their full precision and what JSON cannot say (NaN, infinity) becomes null.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ep::engine {

class Json {
 public:
  Json& begin_object(std::string_view key = {}) { return open(key, '{'); }
  Json& end_object() { return close('}'); }
  Json& begin_array(std::string_view key = {}) { return open(key, '['); }
  Json& end_array() { return close(']'); }

  /// `key` is left empty inside arrays.
  Json& value(std::string_view key, std::string_view text) {
    start(key);
    quote(text);
    return *this;
  }
  Json& value(std::string_view key, const char* text) { return value(key, std::string_view(text)); }
  Json& value(std::string_view key, bool flag) {
    start(key);
    text_ += flag ? "true" : "false";
    return *this;
  }
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) Json& value(std::string_view key,
                                                                                      Number number) {
    start(key);
    if constexpr (std::is_floating_point_v<Number>) {
      if (!std::isfinite(number)) {
        text_ += "null";
        return *this;
      }
    }
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, number);
    text_.append(buffer, end.ptr);
    return *this;
  }
  Json& null(std::string_view key) {
    start(key);
    text_ += "null";
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  void start(std::string_view key) {
    if (!first_) text_ += ',';
    if (depth_ > 0) text_ += '\n', text_.append(static_cast<size_t>(depth_) * 2, ' ');
    first_ = false;
    if (!key.empty()) {
      quote(key);
      text_ += ": ";
    }
  }
  Json& open(std::string_view key, char bracket) {
    start(key);
    text_ += bracket;
    ++depth_;
    first_ = true;
    return *this;
  }
  Json& close(char bracket) {
    --depth_;
    if (!first_) text_ += '\n', text_.append(static_cast<size_t>(depth_) * 2, ' ');
    text_ += bracket;
    first_ = false;
    return *this;
  }
  void quote(std::string_view text) {
    static constexpr char kHex[] = "0123456789abcdef";
    text_ += '"';
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\')
        text_ += '\\', text_ += c;
      else if (byte < 0x20)
        text_ += "\\u00", text_ += kHex[byte >> 4], text_ += kHex[byte & 15];
      else
        text_ += c;
    }
    text_ += '"';
  }

  std::string text_;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace ep::engine
