// Context: how every command speaks. Results to stdout, talk to stderr, errors by the contract.
#include <fmt/core.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "report/error_words.h"

namespace ep {
namespace {
std::atomic<bool> interrupt_flag{false};
extern "C" void on_signal(int) {
  interrupt_flag.store(true);
}
}  // namespace

const std::atomic<bool>& interrupted() {
  static bool installed = [] {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESETHAND | SA_RESTART;  // a second Ctrl-C ends us at once
    for (int s : {SIGINT, SIGTERM, SIGHUP}) sigaction(s, &action, nullptr);
    return true;
  }();
  (void)installed;
  return interrupt_flag;
}

void Context::out(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Context::note(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fputc('\n', stderr);
}

int Context::report(const Error& error) const {
  if (json) {
    nlohmann::ordered_json j = {{"schema", "epready-error-1"}, {"tool", "epready"}};
    j["error"] = {{"kind", to_string(error.kind)},
                  {"what", error.what},
                  {"where", error.where},
                  {"why", error.why},
                  {"next", error.next},
                  {"trace", error.trace}};
    out(j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  note("epready: " + error_text(error, lang));
  return error.exit_code();
}

void Context::next(std::string_view command, Text why) const {
  if (json) return;
  std::string line = fmt::format("{}: {}", tr({"next", "下一步"}), command);
  if (!why.en.empty()) line += fmt::format("   ({})", tr(why));
  out(line + "\n");
}

}  // namespace ep
