// The thread's last error, and the names and texts of errors.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

// The errors that this runtime gives, and a few that programs name.
#define PTXRUN_ERROR(name, text) \
  { name, #name, text }
constexpr ErrorText kErrors[] = {
    PTXRUN_ERROR(cudaSuccess, "no error"),
    PTXRUN_ERROR(cudaErrorInvalidValue, "invalid argument"),
    PTXRUN_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    PTXRUN_ERROR(cudaErrorInitializationError, "initialization error"),
    PTXRUN_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    PTXRUN_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    PTXRUN_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    PTXRUN_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    PTXRUN_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    PTXRUN_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    PTXRUN_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    PTXRUN_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    PTXRUN_ERROR(cudaErrorNotReady, "device not ready"),
    PTXRUN_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    PTXRUN_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    PTXRUN_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    PTXRUN_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    PTXRUN_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    PTXRUN_ERROR(cudaErrorPeerAccessUnsupported,
                 "peer access is not supported between these two devices"),
    PTXRUN_ERROR(cudaErrorNotSupported, "operation not supported"),
    PTXRUN_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    PTXRUN_ERROR(cudaErrorStreamCaptureUnsupported,
                 "operation not permitted when stream is capturing"),
    PTXRUN_ERROR(cudaErrorStreamCaptureInvalidated,
                 "operation failed due to a previous error during capture"),
    PTXRUN_ERROR(cudaErrorStreamCaptureMerge,
                 "operation would result in a merge of separate capture sequences"),
    PTXRUN_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    PTXRUN_ERROR(cudaErrorStreamCaptureIsolation,
                 "dependency created on uncaptured work in another stream"),
    PTXRUN_ERROR(cudaErrorStreamCaptureImplicit,
                 "operation would make the legacy stream depend on a capturing blocking stream"),
    PTXRUN_ERROR(cudaErrorCapturedEvent,
                 "operation not permitted on an event last recorded in a capturing stream"),
    PTXRUN_ERROR(cudaErrorStreamCaptureWrongThread,
                 "attempt to terminate a thread-local capture sequence from another thread"),
    PTXRUN_ERROR(cudaErrorGraphExecUpdateFailure,
                 "the graph update was not performed because it included changes which violated "
                 "constraints specific to instantiated graph update"),
    PTXRUN_ERROR(cudaErrorMissingConfiguration, "missing launch configuration"),
    PTXRUN_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef PTXRUN_ERROR

const char* TextOf(cudaError_t error, const char* ErrorText::*which) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorText& known) { return known.error == error; });
  return found == std::end(kErrors) ? "unrecognized error code" : found->*which;
}

cudaError_t OrSticky(cudaError_t error) {
  return error != cudaSuccess ? error : TheProcess().sticky_error.load();
}

}  // namespace
}  // namespace ptxrun

extern "C" {

cudaError_t cudaGetLastError() {
  return ptxrun::OrSticky(std::exchange(ptxrun::ThisThread().last_error, cudaSuccess));
}

cudaError_t cudaPeekAtLastError() { return ptxrun::OrSticky(ptxrun::ThisThread().last_error); }

const char* cudaGetErrorString(cudaError_t error) {
  return ptxrun::TextOf(error, &ptxrun::ErrorText::text);
}

const char* cudaGetErrorName(cudaError_t error) {
  return ptxrun::TextOf(error, &ptxrun::ErrorText::name);
}

}  // extern "C"
