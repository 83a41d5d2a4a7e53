// epready-engine: expert-parallel dispatch and combine between processes of one machine, checked and
// measured.
#include <iostream>

#include "cpu/cases.h"
#include "json.h"

namespace ep::engine::cpu {

const std::vector<Case>& all_cases() {
  static const std::vector<Case> kCases = {
      {"bench", "dispatch, combine and round trip beside their ceilings, every iteration checked",
       "the expert's own work between dispatch and combine", run_bench},
      {"dispatch", "dispatch alone: layout, count exchange, rows, metadata", "combine", run_bench},
      {"combine", "combine alone, after one dispatch that is not timed", "dispatch", run_bench},
      {"roundtrip", "dispatch directly followed by combine", "each phase by itself", run_bench},
      {"check", "every byte against the reference over a matrix of shapes and patterns", "speed", run_check},
      {"ceiling", "what this machine's memory gives to the same processes, by kind of access",
       "an exchange of tokens", run_bench},
  };
  return kCases;
}

namespace {

std::string cases_help() {
  std::string out;
  for (const Case& row : all_cases()) {
    std::string name = std::string("  ") + row.name;
    name.resize(14, ' ');
    out += name + row.sentence + "; not measured: " + row.not_measured + "\n";
  }
  return out;
}

std::string cases_json() {
  Json json;
  json.begin_object().value("schema", "epready.engine.cases/1").value("tool", kTool).begin_array("cases");
  for (const Case& row : all_cases()) {
    json.begin_object()
        .value("name", row.name)
        .value("does", row.sentence)
        .value("not_measured", row.not_measured);
    json.end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

int usage(const std::string& error) {
  std::cerr << kTool << ": " << error << "\n  next: " << kTool << " --help\n";
  return kUsage;
}

int run(const std::vector<std::string>& arguments) {
  Options options;
  const std::string error = parse_options(arguments, options);
  if (!error.empty()) return usage(error);
  if (options.help) {
    std::cout
        << "usage: " << kTool << " CASE [flags]\n\ncases:\n"
        << cases_help() << "\nflags:\n"
        << flags_help()
        << "\nexit: 0 good, 1 wrong data or a rank failed, 2 usage, 3 cannot be run here, 5 interrupted\n";
    return kGood;
  }
  if (options.list) {
    std::cout << (options.json ? cases_json() : cases_help());
    return kGood;
  }
  if (options.case_name.empty()) return usage("which case? " + std::string("cases:\n") + cases_help());
  for (const Case& row : all_cases()) {
    if (options.case_name != row.name) continue;
    set_tokens(options.shape, options.pattern);
    const std::string wrong = validate(options.shape);
    if (!wrong.empty()) return usage(wrong);
    if (options.fault.kind != Fault::kNone && options.fault.rank >= options.shape.ranks) {
      return usage("--fault names rank " + std::to_string(options.fault.rank) + ", there are " +
                   std::to_string(options.shape.ranks));
    }
    return row.run(options);
  }
  std::vector<std::string> names;
  for (const Case& row : all_cases()) names.push_back(row.name);
  const std::string near = nearest(options.case_name, names);
  return usage("unknown case '" + options.case_name + "'" +
               (near.empty() ? "" : "; did you mean " + near + "?"));
}

}  // namespace
}  // namespace ep::engine::cpu

int main(int argc, char** argv) {
  return ep::engine::cpu::run(std::vector<std::string>(argv + 1, argv + argc));
}
