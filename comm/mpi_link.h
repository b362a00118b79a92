// What an MpiGroup stands on: notes between ranks, bytes in pieces, and waits that end.
//
// Every rank tells every other which call it is in (Meet); bytes move once all agree, so that no
// receive is too short and nothing is sent to a rank that does not want it. A receive for every
// other rank's next note is always open: within any wait a rank sees who failed, left, or waits.
//
// Threads: one at a time.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/call.h"
#include "core/buffer.h"
#include "core/status.h"

namespace slimgrad {

class MpiLink {
 public:
  // As MpiGroup::Create.
  static Result<std::unique_ptr<MpiLink>> Open(MPI_Comm communicator,
                                               std::chrono::milliseconds timeout,
                                               std::size_t piece_bytes);

  // Leaves, and deletes the link unless MPI still holds memory of it; then that is leaked.
  static void Close(std::unique_ptr<MpiLink> link);

  int size() const { return size_; }
  int rank() const { return rank_; }

  // Begins a call: returns once every rank has begun the same one; kMismatch otherwise.
  Status Meet(const Call& mine);
  // The call that `rank` has begun, as it said in the last Meet.
  const Call& call(int rank) const { return begun_[turn_ % 2][Index(rank)].call; }

  // Memory for messages to arrive in, until Room is called again. Not while any are on their way.
  Result<std::span<std::byte>> Room(std::size_t bytes);

  // Put a message on its way; its memory is in use until Finish has returned. Both sides know its
  // size. Messages from one rank to another arrive in the order of these calls.
  Status Send(int to, std::span<const std::byte> message);
  Status Receive(int from, std::span<std::byte> message);
  // Returns when all of them have been sent and have arrived.
  Status Finish();
  // After an error: whether MPI still has memory of a message.
  bool HoldsMemory();

 private:
  using Clock = std::chrono::steady_clock;

  struct Note {
    enum class Kind : std::uint8_t { kCall, kAlive, kFailed, kLeft };
    Kind kind = Kind::kAlive;
    Code code = Code::kOk;         // kFailed
    Call call = {};                // kCall
    std::uint64_t turn = 0;        // kCall, kFailed: the number of the call
    std::array<char, 200> text{};  // kFailed: the message, ended by a zero
  };
  // One note on its way to the others. It changes only when all have been sent it.
  struct Outgoing {
    Note note;
    std::vector<MPI_Request> requests;  // [rank]
  };
  struct Begun {
    std::uint64_t turn = 0;
    Call call;
  };
  struct Transfer {
    int rank = 0;
    bool receive = false;
  };
  enum class Phase : std::uint8_t { kMeet, kTransfer };

  MpiLink(MPI_Comm communicator, std::chrono::milliseconds timeout, std::size_t piece_bytes);

  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }

  void Tell(Outgoing& outgoing);
  bool IsTold(Outgoing& outgoing);
  void Listen(int rank);
  void Take(int rank);
  bool TakeNotes();
  bool TakeTransfers();
  bool Poll();
  void Begin(int rank, bool receive);

  Status Wait(Phase phase);
  bool IsDone(Phase phase);
  bool IsAwaited(Phase phase, int rank) const;
  void LookForLost(Phase phase, Clock::time_point now);
  void Fail(Status status);
  Status Failed(Status status);
  bool Succeeded(int rank, int error);

  bool Leave();
  void Cancel();
  static bool AreIdle(std::vector<MPI_Request>& requests);
  bool IsIdle();

  MPI_Comm communicator_;
  std::chrono::milliseconds timeout_;
  std::size_t piece_bytes_;
  int size_ = 0, rank_ = 0;

  std::uint64_t turn_ = 0;  // the number of the call that this rank is in, or was in last
  // What each rank said of that call and of the next, by the parity of turns: a rank that owes
  // nothing to this one may be a call ahead, never two.
  std::array<std::vector<Begun>, 2> begun_;
  std::optional<Status> failed_, fails_next_;
  bool cancelled_ = false;
  std::vector<bool> gone_;  // [rank]: has sent its last note
  std::vector<Clock::time_point> heard_;

  std::vector<Note> notes_;  // [rank], being received
  std::vector<MPI_Request> note_requests_;
  Outgoing begins_, alive_, farewell_;

  Buffer<std::byte> room_;
  std::vector<MPI_Request> requests_;
  std::vector<Transfer> transfers_;  // [request]
  std::vector<int> open_;            // [rank], of the requests
  int open_requests_ = 0;

  std::vector<int> indices_;  // of MPI_Testsome
  std::vector<MPI_Status> statuses_;
};

}  // namespace slimgrad
