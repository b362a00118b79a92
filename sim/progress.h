// A progress bar for people who wait: one line on a terminal, redrawn in place, nothing in a pipe
// or a file. For the command line alone; the library reports progress through callbacks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace slimgrad::sim {

// The line as drawn, without control characters, exactly `width` - 1 columns (0 where `width` is
// below 20): "[#####.....]  50%  error_feedback(one_bit)". `done` is clamped to `total`; a `total`
// of 0 counts as done. The last column stays free: some terminals wrap there.
std::string ProgressLine(std::string_view label, std::int64_t done, std::int64_t total, int width);

// Columns of the terminal that `stream` is; `otherwise` where it is none, or does not say.
int TerminalWidth(std::FILE* stream, int otherwise);

// Not thread-safe; does not own `stream`. The bar is wiped when the object dies, so that an error
// message or a table starts on a clean line.
class Progress {
 public:
  // Draws only if `stream` is a terminal.
  explicit Progress(std::FILE* stream);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap enough to call after every step: it writes only when the line has changed.
  void Update(std::string_view label, std::int64_t done, std::int64_t total);

  // Wipes the bar; the next Update draws it again.
  void Clear();

 private:
  std::FILE* stream_;  // null: not a terminal
  std::string drawn_;
};

}  // namespace slimgrad::sim
