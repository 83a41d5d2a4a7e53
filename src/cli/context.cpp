// Context: how every command speaks. Results to stdout, talk to stderr, errors by the contract.
#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "host/host.h"

namespace ep {

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
  note("epready: " + error.text());
  return error.exit_code();
}

void Context::next(std::string_view command, Text why) const {
  if (json) return;
  std::string line = fmt::format("{}: {}", tr({"next", "下一步"}), command);
  if (!why.en.empty()) line += fmt::format("   ({})", tr(why));
  out(line + "\n");
}

Result<std::unique_ptr<Host>> Context::open() const {
  return open_host(from);
}

}  // namespace ep
