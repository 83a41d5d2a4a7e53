// Findings in formats of others: SARIF for code hosts, JUnit and CTRF for CI, one line for monitoring.
#include <fmt/core.h>

#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/doctor_report.h"

namespace ep {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) {
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// XML text and attribute values: markup escaped, characters that XML 1.0 forbids left out.
std::string xml(std::string_view text) {
  // Bytes that are no UTF-8 make a document that no parser takes: JSON's dump replaces them.
  const std::string s = Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  for (char c : Json::parse(s).get<std::string>()) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string body(const Finding& f) {
  std::string out = f.cause + "\n";
  for (const auto& x : f.fix) out += x + "\n";
  for (const auto& e : f.evidence)
    out += e.source + (e.line > 0 ? ":" + std::to_string(e.line) : "") + ": " + e.text + "\n";
  return out;
}

/// A path as the reference part of a URI (RFC 3986): what is not plain is percent-encoded.
std::string uri(std::string_view path) {
  std::string out;
  for (unsigned char c : path)
    if (std::isalnum(c) || std::strchr("-._~/", c))
      out += char(c);
    else
      out += fmt::format("%{:02X}", c);
  return out;
}

/// Why silence is no proof of health; empty when it is.
std::string open_question(const Diagnosis& d) {
  if (!d.errors.empty()) return "not read to its end: " + d.errors.front().text();
  if (d.nothing_read) return "nothing to read: the logs are empty";
  if (d.start) return "an error that matches no known problem: " + d.start->text;
  return {};
}

size_t alarms(const Diagnosis& d) {
  size_t n = 0;
  for (const auto& f : d.findings) n += f.severity != Severity::info;
  return n;
}

}  // namespace

std::string diagnosis_sarif(const Diagnosis& d) {
  Json rules = Json::array(), results = Json::array();
  for (const auto& f : d.findings) {
    const char* level = f.severity == Severity::fail   ? "error"
                        : f.severity == Severity::warn ? "warning"
                                                       : "note";
    rules.push_back({{"id", f.code},
                     {"shortDescription", {{"text", f.title}}},
                     {"fullDescription", {{"text", f.cause}}}});
    Json locations = Json::array();
    for (const auto& e : f.evidence)
      if (e.line > 0)
        locations.push_back({{"physicalLocation",
                              {{"artifactLocation", {{"uri", uri(e.source)}}},
                               {"region", {{"startLine", e.line}, {"snippet", {{"text", e.text}}}}}}}});
    results.push_back({{"ruleId", f.code},
                       {"level", level},
                       {"message", {{"text", f.title + "\n" + body(f)}}},
                       {"locations", locations},
                       {"properties", {{"confidence", f.confidence}}}});
  }
  Json run = {{"tool", {{"driver", {{"name", "epready"}, {"rules", rules}}}}}, {"results", results}};
  if (const auto why = open_question(d); !why.empty())
    run["invocations"] = {
        {{"executionSuccessful", d.errors.empty() && !d.nothing_read},
         {"toolExecutionNotifications", {{{"level", "warning"}, {"message", {{"text", why}}}}}}}};
  return dump({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
               {"version", "2.1.0"},
               {"runs", Json::array({run})}});
}

std::string diagnosis_junit(const Diagnosis& d) {
  const std::string why = open_question(d);
  const bool open = alarms(d) == 0 && !why.empty();
  const size_t failed = alarms(d), total = d.findings.size() + (open || d.findings.empty() ? 1 : 0);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  out += fmt::format("<testsuite name=\"epready doctor\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
                     total, failed, open ? 1 : 0);
  if (open)
    out += fmt::format(
        "  <testcase classname=\"epready.doctor\" name=\"judged\"><error message=\"{}\"/></testcase>\n",
        xml(why));
  else if (d.findings.empty())
    out += "  <testcase classname=\"epready.doctor\" name=\"no known problem\"/>\n";
  for (const auto& f : d.findings) {
    out += fmt::format("  <testcase classname=\"epready.doctor\" name=\"{}\">", xml(f.code));
    if (f.severity != Severity::info)
      out += fmt::format("\n    <failure type=\"{}\" message=\"{}\">{}</failure>\n  ", to_string(f.severity),
                         xml(f.title), xml(body(f)));
    out += "</testcase>\n";
  }
  std::string err;
  for (const auto& e : d.errors) err += e.text() + "\n";
  if (!err.empty()) out += fmt::format("  <system-err>{}</system-err>\n", xml(err));
  return out + "</testsuite>\n";
}

std::string diagnosis_ctrf(const Diagnosis& d) {
  Json tests = Json::array();
  const std::string why = open_question(d);
  const bool open = alarms(d) == 0 && !why.empty();
  if (open)
    tests.push_back({{"name", "judged"}, {"status", "other"}, {"duration", 0}, {"message", why}});
  else if (d.findings.empty())
    tests.push_back({{"name", "no known problem"}, {"status", "passed"}, {"duration", 0}});
  for (const auto& f : d.findings)
    tests.push_back({{"name", f.code},
                     {"status", f.severity == Severity::info ? "passed" : "failed"},
                     {"duration", 0},
                     {"message", f.title},
                     {"trace", body(f)},
                     {"extra", {{"severity", to_string(f.severity)}, {"confidence", f.confidence}}}});
  const size_t failed = alarms(d);
  Json summary = {{"tests", tests.size()},
                  {"passed", tests.size() - failed - (open ? 1 : 0)},
                  {"failed", failed},
                  {"pending", 0},
                  {"skipped", 0},
                  {"other", open ? 1 : 0},
                  {"start", 0},
                  {"stop", 0}};
  return dump(
      {{"reportFormat", "CTRF"},
       {"specVersion", "0.0.0"},
       {"results", {{"tool", {{"name", "epready doctor"}}}, {"summary", summary}, {"tests", tests}}}});
}

int nagios_exit_code(const Diagnosis& d) {
  int code = open_question(d).empty() ? 0 : 3;
  for (const auto& f : d.findings) {
    if (f.severity == Severity::fail) return 2;
    if (f.severity == Severity::warn) code = 1;
  }
  return code;
}

std::string diagnosis_nagios(const Diagnosis& d) {
  static const char* const kWords[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  const int code = nagios_exit_code(d);
  std::string text = "no known problem";
  for (const auto& f : d.findings)
    if (f.severity != Severity::info) {
      text = f.code + ": " + f.title;
      break;
    }
  if (code == 3) text = open_question(d);
  for (char& c : text)
    if (c == '|' || c == '\n') c = ' ';
  return fmt::format("EPREADY {} - {} | findings={}\n", kWords[code], text, alarms(d));
}

}  // namespace ep
