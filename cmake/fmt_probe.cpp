// Asks the linker whether fmt_once.cpp holds all that the program uses of fmt.
#include <fmt/core.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  std::string out = fmt::format("{} {:>10.1f} {:x} {:.2f} {} {} {:g}", count, 1.5, 255u, 3.0f, std::string(arguments[0]),
                                true, 1e300);
  out += fmt::format(fmt::runtime("{:<5}|{}|{:L}|{}"), 3LL, 2.25, 12345, "text");
  fmt::print(stderr, "{:e} {} {}\n", 1e30, 'c', static_cast<void*>(&out));
  return fmt::format("{}{:*^{}}", 1.0L, out, count).empty() ? 1 : 0;
}
