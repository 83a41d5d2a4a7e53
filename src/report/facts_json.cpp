#include "report/facts_json.h"

#include <nlohmann/json.hpp>

#include "facts/fields.h"
#include "report/fact_words.h"

namespace ep {

namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(std::string only) : only_(std::move(only)) {}
  template <class T>
  void fact(const char* name, const Fact<T>& f) {
    Json& j = (*at_)[name];
    j["state"] = std::string(to_string(f.known));
    if (f.ok()) j["value"] = f.value;
    if (!f.where.empty()) j["where"] = f.where;
    if (!f.why.empty()) j["why"] = f.why;
  }
  template <class T>
  void plain(const char* name, const T& value) {
    (*at_)[name] = value;
  }
  template <class Body>
  void group(const char* name, Body body) {
    if (!wanted(name)) return;
    down((*at_)[name] = Json::object(), body);
  }
  template <class T, class Label, class Body>
  void list(const char* name, const std::vector<T>& items, Label label, Body body) {
    if (!wanted(name)) return;
    Json& all = (*at_)[name] = Json::array();
    for (const auto& item : items) {
      all.push_back(Json::object());
      all.back()["id"] = label(item);  // "name" is a fact of some items
      down(all.back(), [&] { body(item); });
    }
  }
  Json top = Json::object();

 private:
  bool wanted(const char* name) const { return at_ != &top || only_.empty() || only_ == name; }
  template <class Body>
  void down(Json& j, Body body) {
    Json* up = at_;
    at_ = &j;
    body();
    at_ = up;
  }
  std::string only_;
  Json* at_ = &top;
};

struct AreaNames {
  std::vector<std::string> names;
  template <class T>
  void fact(const char*, const T&) {}
  template <class T>
  void plain(const char*, const T&) {}
  template <class Body>
  void group(const char* name, Body) {
    names.push_back(name);
  }
  template <class T, class Label, class Body>
  void list(const char* name, const std::vector<T>&, Label, Body) {
    names.push_back(name);
  }
};

}  // namespace

std::string facts_json(const Facts& facts, const std::string& area) {
  Writer w(area);
  w.top["schema"] = "epready-facts-1";
  w.top["tool"] = "epready";
  w.top["host"] = Json{{"name", facts.host_name}, {"kind", facts.host_kind}};
  fields(w, facts);
  return w.top.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> fact_areas() {
  AreaNames v;
  fields(v, Facts{});
  return v.names;
}

}  // namespace ep
