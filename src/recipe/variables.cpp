// See variables.h.
#include "recipe/variables.h"

#include <algorithm>

#include "recipe/data_files.h"
#include "recipe/load.h"
#include "recipe/toml.h"

namespace ep {
namespace {

Variable read_variable(const TomlNode& node, const std::string& file, const std::string& owner,
                       std::vector<Error>& errors) {
  TomlReader r(node, file, errors);
  Variable v;
  v.name = r.text("name", true);
  v.owner = owner;
  v.since = r.text("since");
  v.until = r.text("until");
  v.form = r.one_of(
      "form", {"switch", "number", "size", "text", "values", "interfaces", "interface-prefixes"}, "text");
  v.values = r.strings("values");
  v.overwritten_by = r.text("overwritten_by");
  v.overwritten_with = r.text("overwritten_with");
  v.has_range = r.has("min");
  v.min = r.integer("min");
  v.max = r.integer("max");
  if (r.has("min") != r.has("max") || v.min > v.max || (v.has_range && v.form != "number"))
    r.complain(node, "min and max of " + v.name + " do not go together, or it is no number");
  v.note = read_phrase(r, "note", true);
  v.source = r.text("source", true);
  if ((v.form == "values") != !v.values.empty())
    r.complain(node, "form and values of " + v.name + " do not go together");
  r.finish();
  return v;
}

}  // namespace

const Variable* Variables::find(std::string_view name) const {
  auto it = std::lower_bound(rows.begin(), rows.end(), name,
                             [](const Variable& v, std::string_view n) { return v.name < n; });
  return it != rows.end() && it->name == name ? &*it : nullptr;
}

std::string Variables::owner_of(std::string_view name) const {
  for (const auto& [prefix, owner] : prefixes)
    if (starts_with(name, prefix)) return owner;
  return {};
}

std::vector<std::string> Variables::names() const {
  std::vector<std::string> out;
  for (const auto& v : rows) out.push_back(v.name);
  return out;
}

Result<Variables> load_variables(const std::string& override_dir) {
  auto files = data_files("variables", override_dir);
  if (!files) return tl::unexpected(files.error());
  Variables out;
  std::vector<Error> errors;
  for (const auto& f : *files) {
    auto doc = parse_toml(f.content, f.shown);
    if (!doc) return tl::unexpected(doc.error());
    TomlReader r(*doc, f.shown, errors);
    std::string owner = r.text("owner", true);
    for (const auto& p : r.strings("prefixes")) out.prefixes.emplace_back(p, owner);
    for (const TomlNode* v : r.tables("variable"))
      out.rows.push_back(read_variable(*v, f.shown, owner, errors));
    r.finish();
  }
  std::sort(out.rows.begin(), out.rows.end(),
            [](const Variable& a, const Variable& b) { return a.name < b.name; });
  for (size_t i = 1; i < out.rows.size(); ++i)
    if (out.rows[i].name == out.rows[i - 1].name)
      errors.push_back({ErrorKind::malformed,
                        "the variable " + out.rows[i].name + " has two rows",
                        "data/variables",
                        "",
                        "",
                        {}});
  if (!errors.empty()) return tl::unexpected(errors[0]);
  return out;
}

bool in_force(const Variable& v, const std::string& version) {
  if (version.empty()) return true;
  if (!v.since.empty() && compare_versions(VersionOrder::dotted, version, v.since) < 0) return false;
  return v.until.empty() || compare_versions(VersionOrder::dotted, version, v.until) < 0;
}

}  // namespace ep
