#include "tests/comm/group_cases.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "core/buffer.h"

namespace slimgrad {
namespace {

using kernels::CombineOp;

// Rank r's message in a turn: every length from none to a few alignments, different on each rank.
Buffer<std::byte> Message(int rank, int turn) {
  const int length = (rank * 7 + turn * 13) % 40;
  Buffer<std::byte> message(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i)
    message.span()[static_cast<std::size_t>(i)] = std::byte((rank * 31 + turn * 5 + i) & 0xff);
  return message;
}

constexpr int kTurns = 41;  // 0 to 40: on each rank, in some turn, a message is empty

void GatherTurn(Group& group, int turn, TrafficRow& row) {
  std::vector<Buffer<std::byte>> memory;
  std::vector<Bytes> mine;
  for (const int rank : group.local_ranks()) {
    memory.push_back(Message(rank, turn));
    mine.emplace_back(memory.back().span());
  }
  const auto all = group.AllGather(mine, row);
  ASSERT_TRUE(all.ok()) << all.status().message();
  ASSERT_EQ(all->size(), static_cast<std::size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank) {
    const Bytes found = (*all)[static_cast<std::size_t>(rank)];
    const Buffer<std::byte> expected = Message(rank, turn);
    ASSERT_EQ(found.size(), expected.size());
    if (found.empty()) continue;
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.data()) % kMessageAlignment, 0U);
  }
}

bool IsLocal(const Group& group, int rank) {
  return std::ranges::count(group.local_ranks(), rank) > 0;
}

// Rank r's values: finite, with ties between ranks, so that the order matters.
Buffer<std::byte> Values(Pair pair, std::size_t count, int rank) {
  Buffer<std::byte> memory(count * SizeOf(pair.dtype));
  std::mt19937 random(static_cast<unsigned>(rank) + 100);
  std::normal_distribution<float> normal(0, 1000);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* to = &memory.span()[i * SizeOf(pair.dtype)];
    if (pair.dtype == DType::kF32) {
      const float value = normal(random);
      std::memcpy(to, &value, sizeof value);
    } else if (pair.dtype == DType::kF16 || pair.dtype == DType::kBF16) {
      // Around 1 in both types, of either sign.
      const auto bits = static_cast<std::uint16_t>((random() & 0x80ffU) | 0x3000U);
      std::memcpy(to, &bits, sizeof bits);
    } else {
      for (std::size_t b = 0; b < SizeOf(pair.dtype); ++b) to[b] = std::byte(random() & 0xff);
    }
  }
  return memory;
}

}  // namespace

void GatherTurns(Group& group) {
  TrafficRow row(group.size());
  for (int turn = 0; turn < kTurns; ++turn) GatherTurn(group, turn, row);
  // A rank sends its message to each other rank and takes each other rank's.
  std::vector<std::uint64_t> length(row.sent.size());
  std::uint64_t all = 0;
  for (int rank = 0; rank < group.size(); ++rank)
    for (int turn = 0; turn < kTurns; ++turn)
      length[static_cast<std::size_t>(rank)] += Message(rank, turn).size();
  for (const std::uint64_t l : length) all += l;
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const bool local = IsLocal(group, rank);
    EXPECT_EQ(row.sent[r], local ? length[r] * (length.size() - 1) : 0);
    EXPECT_EQ(row.received[r], local ? all - length[r] : 0);
  }
}

std::vector<std::byte> Expected(Pair pair, std::size_t count, int world) {
  std::vector<Buffer<std::byte>> memory;
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < world; ++rank) memory.push_back(Values(pair, count, rank));
  for (const auto& values : memory) inputs.emplace_back(values.span());
  std::vector<std::byte> result(count * SizeOf(pair.dtype));
  kernels::ref::Combine({}, pair.op, pair.dtype, inputs, result);
  return result;
}

void CombineAndCompare(Group& group, Pair pair, std::size_t count,
                       const std::vector<std::byte>& expected) {
  std::vector<Buffer<std::byte>> memory;
  std::vector<Bytes> mine;
  for (const int rank : group.local_ranks()) memory.push_back(Values(pair, count, rank));
  for (const auto& values : memory) mine.emplace_back(values.span());
  const Buffer<std::byte> result(expected.size());
  TrafficRow row(group.size());
  const Status status = group.AllCombine(pair.op, pair.dtype, mine, result.span(), row);
  ASSERT_TRUE(status.ok()) << status.message();
  if (!expected.empty()) {
    EXPECT_EQ(std::memcmp(result.data(), expected.data(), expected.size()), 0)
        << NameOf(pair.dtype) << " op " << static_cast<int>(pair.op) << " count " << count;
  }
  // All ranks together: 2 (n - 1) times the bytes, a dense ring's.
  const auto n = static_cast<std::uint64_t>(group.size());
  for (std::uint64_t r = 0; r < n; ++r) {
    const std::uint64_t own = count / n + (r < count % n ? 1 : 0);
    const std::uint64_t moved = (count - own + own * (n - 1)) * SizeOf(pair.dtype);
    const bool local = IsLocal(group, static_cast<int>(r));
    EXPECT_EQ(row.sent[r], local ? moved : 0);
    EXPECT_EQ(row.received[r], local ? moved : 0);
  }
}

void CombineByHand(Group& group) {
  ASSERT_EQ(group.size(), 2);
  std::vector<std::vector<float>> values = {{1, -8, 3}, {3, 2, 2}};
  std::vector<Bytes> mine;
  for (const int rank : group.local_ranks())
    mine.push_back(std::as_bytes(std::span(values[static_cast<std::size_t>(rank)])));
  std::vector<float> result(3);
  const auto to = std::as_writable_bytes(std::span(result));
  TrafficRow row(2);
  ASSERT_TRUE(group.AllCombine(CombineOp::kMean, DType::kF32, mine, to, row).ok());
  EXPECT_EQ(result, (std::vector<float>{2, -3, 2.5}));
  ASSERT_TRUE(group.AllCombine(CombineOp::kMax, DType::kF32, mine, to, row).ok());
  EXPECT_EQ(result, (std::vector<float>{3, 2, 3}));
}

void ManyCallsInARow(Group& group) {
  for (int turn = 0; turn < 5; ++turn) {
    GatherTurns(group);
    for (const std::size_t count : kCounts)
      CombineAndCompare(group, kPairs[0], count, Expected(kPairs[0], count, group.size()));
  }
}

}  // namespace slimgrad
