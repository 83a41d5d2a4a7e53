// Loading and calling. NVLink multicast stays off in every library that we start: NCCL_NVLS_ENABLE=0.
#include "nccl.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>

#include "../cuda/failure.h"
#include "../cuda/group.h"

namespace ep::engine::gpu {

namespace {

constexpr int kUint8 = 1;  // ncclUint8

std::vector<std::string> candidates(const std::string& wish) {
  if (!wish.empty()) return {wish};
  std::vector<std::string> out;
  if (const char* set = std::getenv("EPREADY_NCCL"); set != nullptr && *set != 0) out.emplace_back(set);
  out.emplace_back("libnccl.so.2");
  for (const char* pattern : {"/opt/*/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
                              "/opt/*/.venv/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
                              "/opt/*/*/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
                              "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
                              "/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2",
                              "/root/.local/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"}) {
    glob_t found = {};
    if (::glob(pattern, 0, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) out.emplace_back(found.gl_pathv[i]);
    }
    ::globfree(&found);
  }
  return out;
}

}  // namespace

std::string Nccl::load(const std::string& wish) {
  std::string why;
  for (const std::string& name : candidates(wish)) {
    library_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      path_ = name;
      break;
    }
    why = ::dlerror();
  }
  if (library_ == nullptr) return "no NCCL library: " + why + "; set EPREADY_NCCL or --nccl to libnccl.so.2";
  const auto find = [this](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library_, name));
    return function != nullptr;
  };
  const bool all = find(get_version_, "ncclGetVersion") && find(get_id_, "ncclGetUniqueId") &&
                   find(init_, "ncclCommInitRank") && find(destroy_, "ncclCommDestroy") &&
                   find(group_start_, "ncclGroupStart") && find(group_end_, "ncclGroupEnd") &&
                   find(send_, "ncclSend") && find(receive_, "ncclRecv") &&
                   find(all_gather_, "ncclAllGather") && find(error_, "ncclGetErrorString");
  if (!all) return path_ + " lacks a function of NCCL 2.7: too old or no NCCL";
  find(all_to_all_, "ncclAlltoAll");
  get_version_(&version_);
  return {};
}

std::unique_ptr<Nccl> Nccl::open(Group& group, const std::string& path, std::string& why) {
  ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  std::unique_ptr<Nccl> out(new Nccl);
  why = out->load(path);
  for (const std::string& theirs : group.gather_text(why)) {
    if (why.empty()) why = theirs;
  }
  if (!why.empty()) return nullptr;
  Id id = {};
  if (group.rank() == 0) out->get_id_(&id);
  id = group.gather(id)[0];
  const int code = out->init_(&out->comm_, group.size(), id, group.rank());
  const std::string mine = code == 0 ? "" : std::string("ncclCommInitRank: ") + out->error_(code);
  for (const std::string& theirs : group.gather_text(mine)) {
    if (why.empty()) why = theirs;
  }
  if (!why.empty()) return nullptr;
  return out;
}

Nccl::~Nccl() {
  if (comm_ != nullptr) destroy_(comm_);
}

void Nccl::check(int code, const char* what) const {
  if (code != 0) throw Failure(1, std::string(what) + ": " + error_(code));
}

void Nccl::send_receive(const std::vector<Part>& parts, void* stream) {
  check(group_start_(), "ncclGroupStart");
  for (size_t r = 0; r < parts.size(); ++r) {
    const int peer = static_cast<int>(r);
    if (parts[r].send_bytes > 0)
      check(send_(parts[r].send, parts[r].send_bytes, kUint8, peer, comm_, stream), "ncclSend");
    if (parts[r].receive_bytes > 0)
      check(receive_(parts[r].receive, parts[r].receive_bytes, kUint8, peer, comm_, stream), "ncclRecv");
  }
  check(group_end_(), "ncclGroupEnd");
}
void Nccl::all_to_all(const void* send, void* receive, size_t bytes_per_rank, void* stream) {
  check(all_to_all_(send, receive, bytes_per_rank, kUint8, comm_, stream), "ncclAlltoAll");
}
void Nccl::all_gather(const void* send, void* receive, size_t bytes, void* stream) {
  check(all_gather_(send, receive, bytes, kUint8, comm_, stream), "ncclAllGather");
}

}  // namespace ep::engine::gpu
