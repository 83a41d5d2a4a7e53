// Threads: a barrier with an exchange board. Processes: one socket pair per rank to the parent, which
// collects a round of messages and hands all of them to everybody.
#include "group.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "failure.h"

namespace ep::engine::gpu {

std::vector<std::vector<double>> Group::gather_samples(const std::vector<double>& mine) {
  Bytes bytes(mine.size() * sizeof(double));
  if (!mine.empty()) std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<std::vector<double>> out;
  for (const Bytes& b : exchange(bytes)) {
    std::vector<double> one(b.size() / sizeof(double));
    if (!one.empty()) std::memcpy(one.data(), b.data(), one.size() * sizeof(double));
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> Group::gather_text(const std::string& mine) {
  std::vector<std::string> out;
  for (const Bytes& b : exchange(Bytes(mine.begin(), mine.end()))) out.emplace_back(b.begin(), b.end());
  return out;
}

namespace {

int guarded(Group& group, const RankBody& body) {
  try {
    return body(group);
  } catch (const Failure& f) {
    std::fprintf(stderr, "rank %d: %s\n", group.rank(), f.what());
    return f.exit_code;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", group.rank(), e.what());
    return 70;
  }
}

/// Shared by the threads of one run.
struct Board {
  std::mutex lock;
  std::condition_variable moved;
  std::vector<Bytes> given, taken;
  int arrived = 0;
  uint64_t round = 0;
  int failed_rank = -1;
};

class ThreadGroup : public Group {
 public:
  ThreadGroup(Board& board, int rank, int size) : board_(board), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool processes() const override { return false; }
  std::vector<Bytes> exchange(const Bytes& mine) override {
    std::unique_lock hold(board_.lock);
    board_.given[rank_] = mine;
    const uint64_t round = board_.round;
    if (++board_.arrived == size_) {
      board_.taken = board_.given;
      board_.arrived = 0;
      ++board_.round;
      board_.moved.notify_all();
    }
    board_.moved.wait(hold, [&] { return board_.round != round || board_.failed_rank >= 0; });
    if (board_.round == round)
      throw Failure(1, "stopped: rank " + std::to_string(board_.failed_rank) + " failed");
    return board_.taken;
  }
  std::vector<int> exchange_fd(int mine) override {
    std::vector<int> out;
    for (const int fd : gather(mine)) out.push_back(::dup(fd));
    barrier();
    return out;
  }

 private:
  Board& board_;
  int rank_, size_;
};

void write_all(int fd, const void* data, size_t bytes, int pass_fd) {
  const auto* at = static_cast<const char*>(data);
  bool first = true;
  while (bytes > 0) {
    iovec part = {const_cast<char*>(at), bytes};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    if (first && pass_fd >= 0) {
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &pass_fd, sizeof(int));
    }
    const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Failure(1, "a rank's process is gone (cannot write to it)");
    at += n;
    bytes -= static_cast<size_t>(n);
    first = false;
  }
}

/// Returns a descriptor that came along, or -1.
int read_all(int fd, void* data, size_t bytes) {
  auto* at = static_cast<char*>(data);
  int passed = -1;
  while (bytes > 0) {
    iovec part = {at, bytes};
    msghdr message = {};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Failure(1, "stopped: another rank failed or its process is gone");
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_type == SCM_RIGHTS) std::memcpy(&passed, CMSG_DATA(head), sizeof(int));
    }
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return passed;
}

void send_message(int socket, const Bytes& message, int fd) {
  const uint64_t size = message.size();
  write_all(socket, &size, sizeof size, fd);
  if (size > 0) write_all(socket, message.data(), size, -1);
}
Bytes receive_message(int socket, int& fd) {
  uint64_t size = 0;
  fd = read_all(socket, &size, sizeof size);
  Bytes out(size);
  if (size > 0) read_all(socket, out.data(), size);
  return out;
}

class ProcessGroup : public Group {
 public:
  ProcessGroup(int socket, int rank, int size) : socket_(socket), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool processes() const override { return true; }
  std::vector<Bytes> exchange(const Bytes& mine) override {
    std::vector<int> ignored;
    return round(mine, -1, ignored);
  }
  std::vector<int> exchange_fd(int mine) override {
    std::vector<int> fds;
    round({}, mine, fds);
    return fds;
  }

 private:
  std::vector<Bytes> round(const Bytes& mine, int fd, std::vector<int>& fds) {
    send_message(socket_, mine, fd);
    std::vector<Bytes> out(size_);
    fds.assign(size_, -1);
    for (int r = 0; r < size_; ++r) out[r] = receive_message(socket_, fds[r]);
    return out;
  }
  int socket_, rank_, size_;
};

/// Parent: relays rounds until a rank hangs up or the limit passes. False when the limit passed.
bool relay(const std::vector<int>& sockets, std::chrono::steady_clock::time_point end) {
  const int n = static_cast<int>(sockets.size());
  try {
    for (;;) {
      std::vector<Bytes> messages(n);
      std::vector<int> fds(n, -1);
      for (int r = 0; r < n; ++r) {
        pollfd wait = {sockets[r], POLLIN, 0};
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        if (::poll(&wait, 1, static_cast<int>(std::max<long long>(0, left.count()))) == 0) return false;
        messages[r] = receive_message(sockets[r], fds[r]);
      }
      for (int to = 0; to < n; ++to) {
        for (int r = 0; r < n; ++r) send_message(sockets[to], messages[r], fds[r]);
      }
      for (const int fd : fds) {
        if (fd >= 0) ::close(fd);
      }
    }
  } catch (const Failure&) {
    return true;  // a rank ended, as all do in the end
  }
}

int reap(const std::vector<pid_t>& children, bool in_time) {
  int code = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(in_time ? 20 : 0);
  for (size_t r = 0; r < children.size(); ++r) {
    int status = 0;
    while (::waitpid(children[r], &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        std::fprintf(stderr, "rank %zu: did not end in time, its process is ended\n", r);
        ::kill(children[r], SIGKILL);
        ::waitpid(children[r], &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const int one = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (WIFSIGNALED(status)) std::fprintf(stderr, "rank %zu: ended by signal %d\n", r, WTERMSIG(status));
    code = std::max(code, one);
  }
  return code;
}

}  // namespace

int run_threads(int ranks, const RankBody& body) {
  Board board;
  board.given.resize(ranks);
  std::vector<int> codes(ranks, 0);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      ThreadGroup group(board, r, ranks);
      codes[r] = guarded(group, body);
      if (codes[r] == 0) return;
      const std::lock_guard hold(board.lock);
      if (board.failed_rank < 0) board.failed_rank = r;
      board.moved.notify_all();
    });
  }
  for (auto& t : threads) t.join();
  return *std::max_element(codes.begin(), codes.end());
}

int run_processes(int ranks, double limit_s, const RankBody& body) {
  std::vector<int> sockets(ranks, -1);
  std::vector<pid_t> children(ranks, -1);
  std::fflush(nullptr);
  for (int r = 0; r < ranks; ++r) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      throw Failure(3, "socketpair failed");
    children[r] = ::fork();
    if (children[r] < 0) throw Failure(3, "fork failed");
    if (children[r] == 0) {
      for (const int other : sockets) {
        if (other >= 0) ::close(other);
      }
      ::close(pair[0]);
      ProcessGroup group(pair[1], r, ranks);
      const int code = guarded(group, body);
      std::fflush(nullptr);
      ::_exit(code);
    }
    ::close(pair[1]);
    sockets[r] = pair[0];
  }
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<long long>(limit_s * 1e3));
  const bool in_time = relay(sockets, end);
  if (!in_time) std::fprintf(stderr, "the run took longer than %.0f s\n", limit_s);
  for (const int s : sockets) ::close(s);
  const int code = reap(children, in_time);
  return in_time ? code : std::max(code, 1);
}

}  // namespace ep::engine::gpu
