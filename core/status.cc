#include "core/status.h"

namespace slimgrad {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kInvalidArgument: return "INVALID_ARGUMENT";
    case Code::kCorrupt: return "CORRUPT";
    case Code::kMismatch: return "MISMATCH";
    case Code::kUnsupported: return "UNSUPPORTED";
    case Code::kPeerLost: return "PEER_LOST";
    case Code::kIo: return "IO";
    case Code::kOutOfMemory: return "OUT_OF_MEMORY";
    case Code::kDevice: return "DEVICE";
  }
  return "UNKNOWN";
}

Status Status::In(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

Status InvalidArgument(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }
Status Corrupt(std::string message) { return {Code::kCorrupt, std::move(message)}; }
Status Mismatch(std::string message) { return {Code::kMismatch, std::move(message)}; }
Status Unsupported(std::string message) { return {Code::kUnsupported, std::move(message)}; }
Status PeerLost(std::string message) { return {Code::kPeerLost, std::move(message)}; }
Status IoError(std::string message) { return {Code::kIo, std::move(message)}; }
Status OutOfMemory(std::string message) { return {Code::kOutOfMemory, std::move(message)}; }
Status DeviceError(std::string message) { return {Code::kDevice, std::move(message)}; }

}  // namespace slimgrad
