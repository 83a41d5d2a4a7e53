// See ahead.h.
#include "plan/ahead.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plan/env_render.h"

namespace ep {
namespace {

bool has_step(const Plan& plan, std::string_view id) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& s) { return s.id == id; });
}

bool renames_nics(const Plan& plan) {
  for (const auto& s : plan.steps)
    for (const auto& p : s.after)
      if (p.name == "rdma-named") return true;
  return false;
}

/// What the plan changes of the facts that the environment is made from.
Facts carried_out(Facts f, const Planned& planned) {
  for (const auto& s : planned.plan.steps)
    for (const auto& a : s.actions)
      if (const auto* merge = std::get_if<MergeModuleOptions>(&a))
        for (const auto& [name, value] : merge->options)
          if (contains(value, "PeerMappingOverride=1")) f.driver.registry_dwords["PeerMappingOverride"] = 1;
  if (has_step(planned.plan, "cuda-toolkit")) {
    CudaToolkit t;
    t.root = "/usr/local/cuda-" + planned.solution.choice("cuda")->version;
    t.has_nvcc = known(true, t.root);
    f.cuda.insert(f.cuda.begin(), t);
  }
  return f;
}

/// `text` with every whole word `name` replaced: mlx5_1 is not part of mlx5_10.
std::string replace_word(const std::string& text, const std::string& name, const std::string& mark) {
  const auto inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = text.find(name, at);
    if (found == text.npos) return out + text.substr(at);
    const size_t end = found + name.size();
    const bool whole = (found == 0 || !inside(text[found - 1])) && (end == text.size() || !inside(text[end]));
    out += text.substr(at, found - at) + (whole ? mark : name);
    at = end;
  }
  return out;
}

}  // namespace

EnvAhead environment_ahead(const Facts& facts, const Planned& planned, const Variables& variables,
                           Lang lang) {
  const Plan& plan = planned.plan;
  const Facts f = carried_out(facts, planned);
  const Topology t = read_topology(f);
  EnvRequest r;
  r.lane = plan.lane;
  r.prefix = plan.prefix;
  r.many_nodes = planned.solution.option("nodes") != "1";
  for (auto [component, version] : {std::pair("nvshmem", &r.nvshmem), {"nccl", &r.nccl}})
    if (const Choice* c = planned.solution.choice(component)) *version = c->version;
  r.venv_follows = has_step(plan, "python");
  // The place on record is the one that pods see; a container that docker runs has no such folder.
  const bool docker = f.container.runtime.value_or("none") == "docker";
  if (planned.platform && !planned.platform->gib_dir.empty() && !f.platform.gib_dir.ok() && !docker) {
    r.gib = "all";
    r.gib_dir = planned.platform->gib_dir;
  }
  EnvAhead out;
  out.plan = compute_env(f, t, variables, r);
  EnvPlan& e = out.plan;
  // The names that hold after the plan are read where the file is written; what is said about today's falls
  // away.
  if (renames_nics(plan)) {
    std::erase_if(e.lines, [](const EnvLine& l) { return l.name == "NVSHMEM_HCA_PREFIX"; });
    std::erase_if(e.left_out, [](const EnvLine& l) { return l.name == "NVSHMEM_HCA_PREFIX"; });
    std::erase_if(e.findings, [](const Finding& x) { return x.code == "prefix_not_mlx5"; });
  }
  std::erase_if(e.left_out, [](const EnvLine& l) { return l.name == "NVSHMEM_HCA_PE_MAPPING"; });
  if (f.container.runtime.value_or("none") != "none")
    for (auto& l : e.left_out)
      if (l.name == "NVSHMEM_IBGDA_NIC_HANDLER")
        l.why = {
            "the driver's options belong to the machine that runs this (epready driver there); auto asks "
            "them",
            "驱动选项属于运行它的主机（在那里执行 epready driver）；auto 会自行查询"};
  for (const auto& nic : t.nics) {
    if (nic.address.empty() || !nic.named || nic.name.empty()) continue;
    const std::string mark = fmt::format("@NIC{}@", out.nics.size());
    bool used = false;
    const auto put = [&](std::string& text) {
      std::string with = replace_word(text, nic.name, mark);
      used = used || with != text;
      text = std::move(with);
    };
    for (auto& l : e.lines) put(l.value);
    for (auto& [gpu, value] : e.per_rank) put(value);
    for (auto& l : e.left_out) put(l.value), put(l.why.en), put(l.why.zh);
    if (used) out.nics.emplace_back(mark, nic.address);
  }
  out.text = env_text(e, EnvForm::shell, lang);
  return out;
}

Facts inside_image(const Facts& host, const std::string& runtime, const std::string& cuda) {
  Facts f = host;
  const std::string where = "inside the image";
  f.os.id = known<std::string>("ubuntu", where);
  f.os.version_id = known<std::string>("24.04", where);
  f.os.codename = known<std::string>("noble", where);
  f.os.libc = absent<std::string>(where);
  f.packages.clear();
  f.packages_readable = known(true, where);
  f.apt_sources.clear();
  f.python.clear();
  f.parts.clear();
  f.tools.clear();
  f.environment.clear();
  f.nccl_conf.clear();
  f.written_environment.clear();
  f.named_paths.clear();
  f.sources.clear();
  f.has_mlx5dv = absent<bool>(where);
  f.ofed_version = absent<std::string>(where);
  f.cuda.clear();
  f.cuda_home_link = absent<std::string>(where);
  if (!cuda.empty()) {
    CudaToolkit t;
    t.root = "/usr/local/cuda";
    t.version = t.nvcc_version = known(cuda, where);
    t.has_nvcc = t.has_cuobjdump = t.has_cccl = t.has_stub = known(true, where);
    f.cuda.push_back(t);
  }
  if (f.container.runtime.value_or("none") == "none") {
    f.container = {};
    f.container.runtime = known(runtime, where);
  }
  f.user.uid = known(0, where);
  f.user.is_root = known(true, where);
  return f;
}

std::string image_for(const Planned& planned) {
  const Choice* cuda = planned.solution.choice("cuda");
  const std::string version = cuda ? cuda->version : "";
  if (planned.platform && !planned.platform->image.empty() && planned.platform->image_cuda == version)
    return planned.platform->image;
  return cuda && cuda->release ? cuda->release->image : "";
}

}  // namespace ep
