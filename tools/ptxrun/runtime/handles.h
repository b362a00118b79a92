// CUDA's opaque handles are pointers to ours. A kernel's handle is the address of its host stub.
#pragma once

#include <cuda_runtime_api.h>

#include "tools/ptxrun/runtime/graph.h"
#include "tools/ptxrun/runtime/pools.h"
#include "tools/ptxrun/runtime/streams.h"

namespace ptxrun {

inline Graph* FromHandle(cudaGraph_t handle) { return reinterpret_cast<Graph*>(handle); }
inline cudaGraph_t ToHandle(Graph* graph) { return reinterpret_cast<cudaGraph_t>(graph); }

// An executable graph is a graph of its own, which shares the nodes of the one it came from.
inline Graph* FromHandle(cudaGraphExec_t handle) { return reinterpret_cast<Graph*>(handle); }
inline cudaGraphExec_t ToExecutable(Graph* graph) {
  return reinterpret_cast<cudaGraphExec_t>(graph);
}

inline GraphNode* FromHandle(cudaGraphNode_t handle) {
  return reinterpret_cast<GraphNode*>(handle);
}
inline cudaGraphNode_t ToHandle(GraphNode* node) { return reinterpret_cast<cudaGraphNode_t>(node); }

inline Event* FromHandle(cudaEvent_t handle) { return reinterpret_cast<Event*>(handle); }
inline cudaEvent_t ToHandle(Event* event) { return reinterpret_cast<cudaEvent_t>(event); }

inline Pool* FromHandle(cudaMemPool_t handle) { return reinterpret_cast<Pool*>(handle); }
inline cudaMemPool_t ToHandle(Pool* pool) { return reinterpret_cast<cudaMemPool_t>(pool); }

}  // namespace ptxrun
