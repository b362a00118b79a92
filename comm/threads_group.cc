#include "comm/threads_group.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/call.h"
#include "core/buffer.h"
#include "core/check.h"

namespace slimgrad {
namespace {

// Longer waits overflow the clock.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);

// What a rank lays on the table for the others to read until the next meeting.
struct Posted {
  Call call;
  Bytes message;
  std::span<const std::byte> combined;  // this rank's combined chunk
};

class Table {
 public:
  Table(int size, std::chrono::milliseconds timeout)
      : timeout_(std::min(timeout, kLongest)),
        posted_(static_cast<std::size_t>(size)),
        arrived_(static_cast<std::size_t>(size)),
        left_(static_cast<std::size_t>(size)) {}

  Posted& at(int rank) { return posted_[static_cast<std::size_t>(rank)]; }
  const std::vector<Posted>& posted() const { return posted_; }

  // The first meeting of a call. Returns when every rank has come here; what they wrote before is
  // then visible to all.
  Status Meet(int rank) {
    std::unique_lock lock(mutex_);
    if (failed_) return *failed_;
    if (Arrive(rank)) return {};
    const std::uint64_t meeting = meeting_;
    const auto done = [&] { return meeting_ != meeting || failed_ || MissingLeft(); };
    const bool in_time = changed_.wait_for(lock, timeout_, done);
    return Outcome(meeting, in_time);
  }

  // A later meeting of a call. Every rank is within the library then and reads the others' memory,
  // so none may return before all have come or left: nobody is waited for but running code, and
  // there is no timeout.
  Status MeetAgain(int rank) {
    std::unique_lock lock(mutex_);
    if (Arrive(rank)) return {};
    const std::uint64_t meeting = meeting_;
    changed_.wait(lock, [&] { return meeting_ != meeting || AllAccountedFor(); });
    return Outcome(meeting, true);
  }

  // From now on every call fails with `status`, or with the error that came first.
  void Fail(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = status;
    changed_.notify_all();
  }

  void Leave(int rank) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  // Whether `rank` was the last to come.
  bool Arrive(int rank) {
    arrived_[static_cast<std::size_t>(rank)] = true;
    if (++count_ < posted_.size()) return false;
    count_ = 0;
    arrived_.assign(arrived_.size(), false);
    ++meeting_;
    changed_.notify_all();
    return true;
  }

  Status Outcome(std::uint64_t meeting, bool in_time) {
    if (meeting_ != meeting) return {};
    if (!failed_) failed_ = Lost(in_time);
    changed_.notify_all();
    return *failed_;
  }

  bool MissingLeft() const {
    for (std::size_t r = 0; r < left_.size(); ++r)
      if (left_[r] && !arrived_[r]) return true;
    return false;
  }
  bool AllAccountedFor() const {
    for (std::size_t r = 0; r < left_.size(); ++r)
      if (!left_[r] && !arrived_[r]) return false;
    return true;
  }
  Status Lost(bool left) const {
    std::vector<std::size_t> missing;
    for (std::size_t r = 0; r < left_.size(); ++r)
      if (!arrived_[r] && (!left || left_[r])) missing.push_back(r);
    return PeerLost(left ? fmt::format("rank {} has left the group", fmt::join(missing, ", "))
                         : fmt::format("rank {} did not come within {} ms",
                                       fmt::join(missing, ", "), timeout_.count()));
  }

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Posted> posted_;
  std::vector<bool> arrived_, left_;
  std::size_t count_ = 0;
  std::uint64_t meeting_ = 0;
  std::optional<Status> failed_;
};

class ThreadsGroup final : public Group {
 public:
  ThreadsGroup(std::shared_ptr<Table> table, int size, int rank, Backend backend)
      : table_(std::move(table)), size_(size), rank_(rank), backend_(backend) {}
  ~ThreadsGroup() override { table_->Leave(rank_); }

  int size() const override { return size_; }
  std::span<const int> local_ranks() const override { return {&rank_, 1}; }

  Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                           TrafficRow& traffic) override {
    SLIMGRAD_CHECK(mine.size() == 1);
    table_->at(rank_) = {{.bytes = mine[0].size()}, mine[0], {}};
    SLIMGRAD_RETURN_IF_ERROR(table_->Meet(rank_));
    SLIMGRAD_RETURN_IF_ERROR(AgreeOnCall());
    CopyMessages(traffic);
    // The others may still be reading what this rank posted.
    SLIMGRAD_RETURN_IF_ERROR(table_->MeetAgain(rank_));
    return std::span<const Bytes>(messages_);
  }

  Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                    std::span<std::byte> result, TrafficRow& traffic) override {
    SLIMGRAD_CHECK(mine.size() == 1 && mine[0].size() == result.size());
    table_->at(rank_) = {{op, dtype, mine[0].size()}, mine[0], {}};
    SLIMGRAD_RETURN_IF_ERROR(table_->Meet(rank_));
    SLIMGRAD_RETURN_IF_ERROR(AgreeOnCall());
    CombineOwnChunk(op, dtype, result, traffic);
    SLIMGRAD_RETURN_IF_ERROR(table_->MeetAgain(rank_));
    CopyChunks(dtype, result, traffic);
    return table_->MeetAgain(rank_);
  }

 private:
  // Every rank sees the same table, so all come to the same verdict and take the same way: ranks in
  // different calls, which meet a different number of times, part here.
  Status AgreeOnCall() {
    Status status = CheckSame();
    if (status.ok()) return status;
    SLIMGRAD_RETURN_IF_ERROR(table_->MeetAgain(rank_));  // the others may still be comparing
    table_->Fail(status);
    return status;
  }

  Status CheckSame() const {
    const std::vector<Posted>& posted = table_->posted();
    for (int rank = 1; rank < size_; ++rank)
      SLIMGRAD_RETURN_IF_ERROR(CheckSameCall(posted[0].call, table_->at(rank).call, rank));
    return {};
  }

  void CopyMessages(TrafficRow& traffic) {
    std::size_t total = 0;
    for (const Posted& other : table_->posted()) total += Rounded(other.message.size());
    if (arena_.size() < total) arena_ = Buffer<std::byte>(total);
    messages_.resize(static_cast<std::size_t>(size_));
    std::size_t at = 0;
    for (int r = 0; r < size_; ++r) {
      const Bytes message = table_->at(r).message;
      const std::span<std::byte> copy = arena_.span().subspan(at, message.size());
      Copy(message, copy, r, traffic);
      messages_[static_cast<std::size_t>(r)] = copy;
      at += Rounded(message.size());
    }
    traffic.sent[Index()] += table_->at(rank_).message.size() * static_cast<std::size_t>(size_ - 1);
  }

  void CombineOwnChunk(kernels::CombineOp op, DType dtype, std::span<std::byte> result,
                       TrafficRow& traffic) {
    const std::size_t element = SizeOf(dtype), count = result.size() / element;
    const Chunk chunk = ChunkOf(count, size_, rank_);
    inputs_.resize(static_cast<std::size_t>(size_));
    for (int r = 0; r < size_; ++r)
      inputs_[static_cast<std::size_t>(r)] =
          table_->at(r).message.subspan(chunk.begin * element, chunk.size() * element);
    const std::span<std::byte> own = result.subspan(chunk.begin * element, chunk.size() * element);
    kernels::Combine(backend_, op, dtype, inputs_, own);
    table_->at(rank_).combined = own;
    traffic.received[Index()] += own.size() * static_cast<std::size_t>(size_ - 1);
    traffic.sent[Index()] += result.size() - own.size();
  }

  void CopyChunks(DType dtype, std::span<std::byte> result, TrafficRow& traffic) {
    const std::size_t element = SizeOf(dtype), count = result.size() / element;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const Chunk chunk = ChunkOf(count, size_, r);
      Copy(table_->at(r).combined, result.subspan(chunk.begin * element, chunk.size() * element), r,
           traffic);
    }
    traffic.sent[Index()] +=
        table_->at(rank_).combined.size() * static_cast<std::size_t>(size_ - 1);
  }

  void Copy(Bytes from, std::span<std::byte> to, int rank, TrafficRow& traffic) const {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    if (rank != rank_) traffic.received[Index()] += from.size();
  }

  static std::size_t Rounded(std::size_t bytes) {
    return (bytes + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
  }
  std::size_t Index() const { return static_cast<std::size_t>(rank_); }

  std::shared_ptr<Table> table_;
  int size_, rank_;
  Backend backend_;
  Buffer<std::byte> arena_;
  std::vector<Bytes> messages_, inputs_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> MakeThreadsGroups(int size, std::chrono::milliseconds timeout,
                                                      Backend backend) {
  SLIMGRAD_CHECK(size >= 1);
  const auto table = std::make_shared<Table>(size, timeout);
  std::vector<std::unique_ptr<Group>> groups;
  groups.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    groups.push_back(std::make_unique<ThreadsGroup>(table, size, rank, backend));
  return groups;
}

}  // namespace slimgrad
