#include "report/fact_words.h"

#include <fmt/format.h>

namespace ep {

std::string_view to_string(Known state) {
  switch (state) {
    case Known::yes:
      return "known";
    case Known::absent:
      return "absent";
    case Known::unreadable:
      return "unreadable";
    case Known::malformed:
      break;
  }
  return "malformed";
}

std::string_view state_word(Known state, Lang lang) {
  if (lang == Lang::en) return to_string(state);
  switch (state) {
    case Known::yes:
      return "已知";
    case Known::absent:
      return "不存在";
    case Known::unreadable:
      return "无法读取";
    case Known::malformed:
      break;
  }
  return "无法解析";
}

std::string value_text(double v) {
  return fmt::format("{:g}", v);
}

}  // namespace ep
