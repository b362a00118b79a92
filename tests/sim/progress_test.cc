#include "sim/progress.h"

#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace slimgrad::sim {
namespace {

TEST(ProgressLine, HalfWay) {
  EXPECT_EQ(ProgressLine("one_bit", 50, 100, 40), "[######.......]  50%  one_bit          ");
}

TEST(ProgressLine, StartAndEnd) {
  EXPECT_EQ(ProgressLine("a", 0, 7, 30), "[.........]   0%  a          ");
  EXPECT_EQ(ProgressLine("a", 7, 7, 30), "[#########] 100%  a          ");
  EXPECT_EQ(ProgressLine("no room for a name", 7, 7, 25), "[########] 100%         ");
}

TEST(ProgressLine, TakesNonsenseCalmly) {
  EXPECT_EQ(ProgressLine("a", 9, 7, 25), ProgressLine("a", 7, 7, 25));
  EXPECT_EQ(ProgressLine("a", -1, 7, 25), ProgressLine("a", 0, 7, 25));
  EXPECT_EQ(ProgressLine("a", 0, 0, 25), ProgressLine("a", 7, 7, 25));
  EXPECT_EQ(ProgressLine("a", 1, 2, 0), "");
  EXPECT_EQ(ProgressLine("a", 1, 2, 19), "");
}

TEST(ProgressLine, NeverWiderThanTheTerminal) {
  const std::string label(200, 'x');
  for (int width = 20; width < 140; ++width) {
    EXPECT_EQ(ProgressLine(label, 1, 3, width).size(), static_cast<std::size_t>(width - 1));
    EXPECT_EQ(ProgressLine("a", 1, 3, width).size(), static_cast<std::size_t>(width - 1));
  }
}

TEST(ProgressLine, LabelCannotMoveTheCursor) {
  EXPECT_EQ(ProgressLine("a\r\033[2Jb", 0, 1, 40).find_first_of("\r\033"), std::string::npos);
}

TEST(Progress, WritesNothingIntoAFile) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress(file);
    for (int step = 0; step <= 10; ++step) progress.Update("none", step, 10);
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

// What a terminal receives while `body` runs; nothing on a system without pseudo-terminals.
template <class Body>
std::optional<std::string> OnTerminal(const Body& body) {
  int master = -1;
  int slave = -1;
  winsize size = {24, 40, 0, 0};
  if (openpty(&master, &slave, nullptr, nullptr, &size) != 0) return std::nullopt;
  std::FILE* terminal = fdopen(slave, "w");
  body(terminal);
  std::fputs("\n", terminal);  // reading stops here
  std::fflush(terminal);
  std::string out;
  std::array<char, 4096> buffer;
  while (out.find('\n') == std::string::npos) {
    const ssize_t got = read(master, buffer.data(), buffer.size());
    if (got <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  std::fclose(terminal);
  close(master);
  return out;
}

TEST(Progress, DrawsOnATerminalAndWipes) {
  const std::optional<std::string> shown = OnTerminal([](std::FILE* terminal) {
    Progress progress(terminal);
    progress.Update("none", 1, 2);
    progress.Update("none", 1, 2);  // nothing new: nothing written
  });
  if (!shown) GTEST_SKIP() << "no pseudo-terminal on this system";  // a bare container
  EXPECT_EQ(shown->substr(0, shown->find('\n') - 1),
            "\r" + ProgressLine("none", 1, 2, 40) + "\r" + std::string(39, ' ') + "\r");
}

}  // namespace
}  // namespace slimgrad::sim
