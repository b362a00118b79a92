#include "comm/mpi_link.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/group.h"
#include "core/check.h"

namespace slimgrad {
namespace {

using std::chrono::milliseconds;

// Longer waits overflow the clock.
constexpr milliseconds kLongest = std::chrono::hours(24 * 365);

// How long one that leaves waits for the others to do so, or for MPI to give memory back.
constexpr milliseconds kLeaving(1000);

constexpr int kNoteTag = 1, kMessageTag = 2;

// Between two polls. Most waits are short, and a longer one must not take a processor from a rank
// that has work for it.
void Rest(std::chrono::nanoseconds idle) {
  if (idle < milliseconds(1)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

std::string TextOf(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

Status CheckArguments(MPI_Comm communicator, std::size_t piece_bytes) {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  if (begun == 0 || ended != 0)
    return InvalidArgument(fmt::format("MPI: expected to be running, found it {}",
                                       ended != 0 ? "finalized" : "not initialized"));
  if (piece_bytes == 0 || piece_bytes > INT_MAX)
    return InvalidArgument(
        fmt::format("piece_bytes: expected 1 to {}, found {}", INT_MAX, piece_bytes));
  if (communicator == MPI_COMM_NULL)
    return InvalidArgument("communicator: expected one with this process, found MPI_COMM_NULL");
  int inter = 0;
  MPI_Comm_test_inter(communicator, &inter);
  if (inter != 0)
    return InvalidArgument("communicator: expected an intracommunicator, found an inter one");
  return {};
}

// A copy whose errors are returned. Where not all come, MPI still has the handle: it is leaked.
Result<MPI_Comm> Copy(MPI_Comm communicator, milliseconds timeout) {
  const auto begin = std::chrono::steady_clock::now();
  struct Handle {
    MPI_Comm communicator;
  };
  Buffer<Handle> copy(1);
  MPI_Comm& handle = copy.data()->communicator;
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_Comm_idup(communicator, &handle, &request);
  for (int done = 0; error == MPI_SUCCESS && done == 0;) {
    error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS || done != 0) break;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > timeout) {
      Abandon(std::move(copy));
      return PeerLost(
          fmt::format("a rank did not come to make the group within {} ms", timeout.count()));
    }
    Rest(waited);
  }
  if (error != MPI_SUCCESS) return PeerLost("MPI_Comm_idup: " + TextOf(error));
  MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  return handle;
}

}  // namespace

Result<std::unique_ptr<MpiLink>> MpiLink::Open(MPI_Comm communicator, milliseconds timeout,
                                               std::size_t piece_bytes) {
  timeout = std::min(timeout, kLongest);
  SLIMGRAD_RETURN_IF_ERROR(CheckArguments(communicator, piece_bytes));
  SLIMGRAD_ASSIGN_OR_RETURN(MPI_Comm copy, Copy(communicator, timeout));
  return std::unique_ptr<MpiLink>(new MpiLink(copy, timeout, piece_bytes));
}

MpiLink::MpiLink(MPI_Comm communicator, milliseconds timeout, std::size_t piece_bytes)
    : communicator_(communicator), timeout_(timeout), piece_bytes_(piece_bytes) {
  static_assert(std::is_trivially_copyable_v<Note>);
  MPI_Comm_size(communicator_, &size_);
  MPI_Comm_rank(communicator_, &rank_);
  const auto n = static_cast<std::size_t>(size_);
  for (auto& turn : begun_) turn.resize(n);
  gone_.resize(n);
  heard_.resize(n);
  notes_.resize(n);
  note_requests_.resize(n, MPI_REQUEST_NULL);
  for (Outgoing* outgoing : {&begins_, &alive_, &farewell_})
    outgoing->requests.resize(n, MPI_REQUEST_NULL);
  open_.resize(n);
  indices_.resize(n);
  statuses_.resize(n);
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_) Listen(rank);
}

Status MpiLink::Meet(const Call& mine) {
  ++turn_;
  if (!failed_) failed_ = std::exchange(fails_next_, {});
  if (failed_) return *failed_;
  begins_.note = {.kind = Note::Kind::kCall, .call = mine, .turn = turn_};
  begun_[turn_ % 2][Index(rank_)] = {turn_, mine};
  Tell(begins_);
  SLIMGRAD_RETURN_IF_ERROR(Wait(Phase::kMeet));
  for (int rank = 1; rank < size_; ++rank)
    if (Status status = CheckSameCall(call(0), call(rank), rank); !status.ok())
      return Failed(std::move(status));
  return {};
}

Result<std::span<std::byte>> MpiLink::Room(std::size_t bytes) {
  if (room_.size() < bytes) {
    try {
      room_ = {};
      room_ = Buffer<std::byte>(bytes);
    } catch (const std::bad_alloc&) {
      return Failed(OutOfMemory(fmt::format(
          "rank {}: expected {} bytes to receive into, found too little", rank_, bytes)));
    }
  }
  return room_.first(bytes);
}

Status MpiLink::Send(int to, std::span<const std::byte> message) {
  for (; !message.empty() && !failed_;) {
    const std::size_t piece = std::min(piece_bytes_, message.size());
    Begin(to, false);
    Succeeded(to, MPI_Isend(message.data(), static_cast<int>(piece), MPI_BYTE, to, kMessageTag,
                            communicator_, &requests_.back()));
    message = message.subspan(piece);
  }
  return failed_.value_or(Status());
}

Status MpiLink::Receive(int from, std::span<std::byte> message) {
  for (; !message.empty() && !failed_;) {
    const std::size_t piece = std::min(piece_bytes_, message.size());
    Begin(from, true);
    Succeeded(from, MPI_Irecv(message.data(), static_cast<int>(piece), MPI_BYTE, from, kMessageTag,
                              communicator_, &requests_.back()));
    message = message.subspan(piece);
  }
  return failed_.value_or(Status());
}

void MpiLink::Begin(int rank, bool receive) {
  requests_.push_back(MPI_REQUEST_NULL);
  transfers_.push_back({rank, receive});
  ++open_[Index(rank)];
  ++open_requests_;
}

Status MpiLink::Finish() {
  if (indices_.size() < requests_.size()) {
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
  }
  SLIMGRAD_RETURN_IF_ERROR(Wait(Phase::kTransfer));
  requests_.clear();
  transfers_.clear();
  return {};
}

bool MpiLink::HoldsMemory() {
  if (!failed_) return false;
  Cancel();
  return !AreIdle(requests_);
}

void MpiLink::Tell(Outgoing& outgoing) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || outgoing.requests[Index(rank)] != MPI_REQUEST_NULL) continue;
    Succeeded(rank, MPI_Isend(&outgoing.note, sizeof outgoing.note, MPI_BYTE, rank, kNoteTag,
                              communicator_, &outgoing.requests[Index(rank)]));
  }
}

bool MpiLink::IsTold(Outgoing& outgoing) { return AreIdle(outgoing.requests); }

void MpiLink::Listen(int rank) {
  Succeeded(rank, MPI_Irecv(&notes_[Index(rank)], sizeof(Note), MPI_BYTE, rank, kNoteTag,
                            communicator_, &note_requests_[Index(rank)]));
}

void MpiLink::Take(int rank) {
  const Note& note = notes_[Index(rank)];
  heard_[Index(rank)] = Clock::now();
  switch (note.kind) {
    case Note::Kind::kCall: begun_[note.turn % 2][Index(rank)] = {note.turn, note.call}; break;
    case Note::Kind::kAlive: break;
    case Note::Kind::kFailed: {
      gone_[Index(rank)] = true;
      // That of a call which this rank has yet to begin leaves the present one alone.
      std::optional<Status>& status = note.turn > turn_ ? fails_next_ : failed_;
      if (!status) status = Status(note.code, note.text.data());
      break;
    }
    case Note::Kind::kLeft: gone_[Index(rank)] = true; break;
  }
  if (!gone_[Index(rank)]) Listen(rank);
}

bool MpiLink::TakeNotes() {
  int count = 0;
  const int error =
      MPI_Testsome(size_, note_requests_.data(), &count, indices_.data(), statuses_.data());
  if (count == MPI_UNDEFINED) return false;
  for (int i = 0; i < count; ++i) {
    const int rank = indices_[Index(i)];
    const int own = error == MPI_ERR_IN_STATUS ? statuses_[Index(i)].MPI_ERROR : error;
    if (Succeeded(rank, own)) Take(rank);
  }
  return count > 0;
}

bool MpiLink::TakeTransfers() {
  if (open_requests_ == 0) return false;
  int count = 0;
  const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                 indices_.data(), statuses_.data());
  if (count == MPI_UNDEFINED) return false;
  for (int i = 0; i < count; ++i) {
    const Transfer& transfer = transfers_[Index(indices_[Index(i)])];
    --open_[Index(transfer.rank)];
    --open_requests_;
    if (transfer.receive) heard_[Index(transfer.rank)] = Clock::now();
    Succeeded(transfer.rank, error == MPI_ERR_IN_STATUS ? statuses_[Index(i)].MPI_ERROR : error);
  }
  return count > 0;
}

bool MpiLink::Poll() {
  bool any = false;
  while (TakeNotes()) any = true;  // a rank that has failed said before which call it was in
  return TakeTransfers() || any;
}

bool MpiLink::IsAwaited(Phase phase, int rank) const {
  if (phase == Phase::kTransfer) return open_[Index(rank)] > 0;
  return begun_[turn_ % 2][Index(rank)].turn != turn_ ||
         begins_.requests[Index(rank)] != MPI_REQUEST_NULL;
}

bool MpiLink::IsDone(Phase phase) {
  if (phase == Phase::kTransfer) return open_requests_ == 0;
  if (!IsTold(begins_)) return false;
  for (int rank = 0; rank < size_; ++rank)
    if (IsAwaited(phase, rank)) return false;
  return true;
}

Status MpiLink::Wait(Phase phase) {
  Clock::time_point now = Clock::now(), moved = now, said_alive = now;
  std::ranges::fill(heard_, now);
  for (;;) {
    const bool any = Poll();
    if (failed_) return *failed_;
    if (IsDone(phase)) return {};
    now = Clock::now();
    if (any) moved = now;
    LookForLost(phase, now);
    // Others may wait for this rank, which waits for a lost one: it must not be the one they name.
    if (now - said_alive > timeout_ / 4) {
      said_alive = now;
      AreIdle(alive_.requests);
      Tell(alive_);  // all but those that have yet to take the last
    }
    Rest(now - moved);
  }
}

void MpiLink::LookForLost(Phase phase, Clock::time_point now) {
  std::vector<int> left, silent;  // empty ones take nothing from the heap
  for (int rank = 0; rank < size_; ++rank) {
    if (!IsAwaited(phase, rank)) continue;
    // In a transfer, one that left has sent its bytes before.
    if (phase == Phase::kMeet && gone_[Index(rank)]) left.push_back(rank);
    if (now - heard_[Index(rank)] > timeout_) silent.push_back(rank);
  }
  if (!left.empty()) {
    Fail(PeerLost(fmt::format("rank {} has left the group", fmt::join(left, ", "))));
  } else if (!silent.empty()) {
    Fail(PeerLost(fmt::format("rank {} {} within {} ms", fmt::join(silent, ", "),
                              phase == Phase::kMeet ? "did not come" : "sent and took nothing",
                              timeout_.count())));
  }
}

void MpiLink::Fail(Status status) {
  if (failed_) return;
  failed_ = std::move(status);
  Note& note = farewell_.note;
  note.kind = Note::Kind::kFailed;
  note.code = failed_->code();
  note.turn = turn_;
  failed_->message().copy(note.text.data(), note.text.size() - 1);
  Tell(farewell_);
}

Status MpiLink::Failed(Status status) {
  Fail(std::move(status));
  return *failed_;
}

bool MpiLink::Succeeded(int rank, int error) {
  if (error == MPI_SUCCESS) return true;
  Fail(PeerLost(fmt::format("rank {}: MPI: {}", rank, TextOf(error))));
  return false;
}

void MpiLink::Close(std::unique_ptr<MpiLink> link) {
  if (!link->Leave()) static_cast<void>(link.release());
}

// Returns whether MPI holds no memory of this object any more.
bool MpiLink::Leave() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0) return false;
  const auto begin = Clock::now(), until = begin + std::min(timeout_, kLeaving);
  if (!failed_) {
    farewell_.note.kind = Note::Kind::kLeft;
    Tell(farewell_);
  }
  const auto all_left = [&] {
    return IsTold(farewell_) && IsTold(alive_) && std::ranges::count(gone_, true) == size_ - 1;
  };
  const auto failed = [&] { return failed_ || fails_next_; };
  while (!failed() && !all_left() && Clock::now() < until) {
    Poll();
    Rest(Clock::now() - begin);
  }
  if (!failed() && all_left()) {
    // Nothing is on its way any more: what would still arrive after this could reach a later
    // communicator, to which MPI may give the number of this one.
    MPI_Comm_free(&communicator_);
    return true;
  }
  Cancel();
  while (!IsIdle() && Clock::now() < until) Rest(Clock::now() - begin);
  return IsIdle();
}

// Takes back the receives that nothing has reached. MPI takes back no sends.
void MpiLink::Cancel() {
  if (std::exchange(cancelled_, true)) return;
  for (MPI_Request& request : note_requests_)
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (transfers_[i].receive && requests_[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests_[i]);
}

bool MpiLink::AreIdle(std::vector<MPI_Request>& requests) {
  bool idle = true;
  for (MPI_Request& request : requests) {
    int done = 0;
    if (request != MPI_REQUEST_NULL) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    idle = idle && request == MPI_REQUEST_NULL;
  }
  return idle;
}

// Whether MPI holds no memory of this object any more. Forgets notes that come.
bool MpiLink::IsIdle() {
  bool idle = true;
  for (auto* requests :
       {&note_requests_, &requests_, &begins_.requests, &alive_.requests, &farewell_.requests})
    idle = AreIdle(*requests) && idle;
  return idle;
}

}  // namespace slimgrad
