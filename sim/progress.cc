#include "sim/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "sim/report/format.h"

namespace slimgrad::sim {
namespace {

constexpr int kLeastWidth = 20;
constexpr int kUsualWidth = 80;

}  // namespace

int TerminalWidth(std::FILE* stream, int otherwise) {
  winsize size = {};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

std::string ProgressLine(std::string_view label, std::int64_t done, std::int64_t total, int width) {
  if (width < kLeastWidth) return "";
  const double part = total <= 0 ? 1
                                 : static_cast<double>(std::clamp<std::int64_t>(done, 0, total)) /
                                       static_cast<double>(total);
  const auto room = static_cast<std::size_t>(width) - 1;
  const std::size_t bar = std::min<std::size_t>(30, room / 3);
  const auto filled = static_cast<std::size_t>(part * static_cast<double>(bar));
  const std::string line =
      fmt::format("[{}{}] {:3}%  ", std::string(filled, '#'), std::string(bar - filled, '.'),
                  static_cast<int>(part * 100));
  const std::size_t left = room > line.size() ? room - line.size() : 0;
  // Less than eight columns hold no name worth reading.
  const std::string name = left < 8 ? "" : report::Shorten(report::OneLine(label), left);
  const std::size_t used = line.size() + report::DisplayWidth(name);
  const std::string padding(room > used ? room - used : 0, ' ');
  return (line + name + padding).substr(0, name.empty() ? room : std::string::npos);
}

Progress::Progress(std::FILE* stream) : stream_(isatty(fileno(stream)) ? stream : nullptr) {}

Progress::~Progress() { Clear(); }

void Progress::Update(std::string_view label, std::int64_t done, std::int64_t total) {
  if (stream_ == nullptr) return;
  std::string line = ProgressLine(label, done, total, TerminalWidth(stream_, kUsualWidth));
  if (line == drawn_) return;
  std::fputs(("\r" + line).c_str(), stream_);
  std::fflush(stream_);
  drawn_ = std::move(line);
}

void Progress::Clear() {
  if (drawn_.empty()) return;
  std::fputs(fmt::format("\r{}\r", std::string(report::DisplayWidth(drawn_), ' ')).c_str(),
             stream_);
  std::fflush(stream_);
  drawn_.clear();
}

}  // namespace slimgrad::sim
