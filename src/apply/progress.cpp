// Progress on stderr: one redrawn line on a terminal, plain lines otherwise. A clock of its own keeps the
// elapsed time going while a step says nothing.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "apply/apply.h"
#include "base/log.h"
#include "base/term.h"
#include "base/text.h"

namespace ep {
namespace {

using Clock = std::chrono::steady_clock;

class Silent : public Progress {
  void step_started(const Step&, size_t, size_t) override {}
  void output_line(const Step&, std::string_view) override {}
  void step_ended(const StepResult&) override {}
  void message(std::string_view) override {}
};

std::string clock_text(double s) {
  return s < 60 ? fmt::format("{:.1f}s", s) : fmt::format("{}m{:02d}s", int(s) / 60, int(s) % 60);
}

// Cuts to terminal columns, never in the middle of a character.
std::string cut(std::string_view text, size_t columns) {
  std::string out(text);
  for (char& c : out)
    if (c == '\t' || c == '\r') c = ' ';
  while (display_width(out) > columns) {
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (!out.empty()) out.pop_back();
  }
  return out;
}

class OnStderr : public Progress {
 public:
  OnStderr(bool terminal, bool color, bool unicode, int width, ProgressPace pace)
      : terminal_(terminal), color_(color), unicode_(unicode), width_(width), pace_(pace) {
    clock_ = std::thread([this] { tick(); });
  }
  ~OnStderr() override {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    clock_.join();
    clear();
  }

  void step_started(const Step& step, size_t index, size_t count) override {
    std::lock_guard lock(mutex_);
    running_[step.id] = {Clock::now(), Clock::now(), index, {}};
    count_ = count;
    if (terminal_)
      redraw(step.id);
    else
      line(fmt::format("[{}/{}] {}: {}", index, count, step.id, step.title));
  }
  void output_line(const Step& step, std::string_view text) override {
    std::lock_guard lock(mutex_);
    auto it = running_.find(step.id);
    if (it == running_.end() || trim(text).empty()) return;
    it->second.last = std::string(trim(text));
    latest_ = step.id;
    // Ten redraws a second are enough for eyes; a compiler prints thousands of lines.
    if (terminal_ && Clock::now() - drawn_ > std::chrono::milliseconds(100)) redraw(step.id);
  }
  void step_ended(const StepResult& r) override {
    std::lock_guard lock(mutex_);
    running_.erase(r.id);
    if (r.state == StepState::satisfied) return;  // the report lists them; talk is for what happens
    bool good = r.state == StepState::done;
    std::string word = good ? (unicode_ ? "✔" : "ok") : std::string(to_string(r.state));
    std::string text = paint(good                           ? Style::green
                             : r.state == StepState::failed ? Style::red
                                                            : Style::yellow,
                             word, color_);
    text += fmt::format(" {}{}", r.id, r.seconds > 0 ? " (" + clock_text(r.seconds) + ")" : "");
    if (!r.reason.empty()) text += ": " + r.reason;
    line(text);
    if (terminal_ && !running_.empty()) redraw(running_.begin()->first);
  }
  void message(std::string_view text) override {
    std::lock_guard lock(mutex_);
    line(text);
  }

 private:
  struct Running {
    Clock::time_point begun, told;
    size_t index = 0;
    std::string last;
  };
  void tick() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, pace_.redraw, [this] { return over_; })) {
      if (running_.empty()) continue;
      if (terminal_) {
        redraw(running_.count(latest_) ? latest_ : running_.begin()->first);
        continue;
      }
      for (auto& [id, r] : running_)
        if (Clock::now() - r.told >= pace_.still_there) {
          r.told = Clock::now();
          line(fmt::format("[{}/{}] {}: {}  {}", r.index, count_, id, clock_text(seconds_of(r)),
                           r.last.empty() ? "works" : r.last));
        }
    }
  }
  static double seconds_of(const Running& r) {
    return std::chrono::duration<double>(Clock::now() - r.begun).count();
  }
  void clear() {
    if (terminal_ && shown_) put("\r\x1b[K");
    shown_ = false;
  }
  void line(std::string_view text) {
    clear();
    log_note(text);
  }
  void redraw(const std::string& id) {
    const Running& r = running_[id];
    std::string more = running_.size() > 1 ? fmt::format(" +{}", running_.size() - 1) : "";
    std::string text =
        fmt::format("[{}/{}{}] {} {}  {}", r.index, count_, more, clock_text(seconds_of(r)), id, r.last);
    put("\r\x1b[K" + cut(text, size_t(std::max(20, width_ - 1))));
    shown_ = true;
    drawn_ = Clock::now();
  }
  void put(std::string_view text) {
    ssize_t n = ::write(2, text.data(), text.size());
    (void)n;
  }
  bool terminal_, color_, unicode_, shown_ = false, over_ = false;
  int width_;
  ProgressPace pace_;
  size_t count_ = 0;
  std::string latest_;  // the step that said something last
  Clock::time_point drawn_{};
  std::map<std::string, Running> running_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread clock_;
};

}  // namespace

std::unique_ptr<Progress> silent_progress() {
  return std::make_unique<Silent>();
}
std::unique_ptr<Progress> stderr_progress(bool terminal, bool color, bool unicode, int width,
                                          ProgressPace pace) {
  return std::make_unique<OnStderr>(terminal, color, unicode, width, pace);
}

}  // namespace ep
