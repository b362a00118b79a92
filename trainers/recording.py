"""Data-parallel training with simulated workers, written down as a trace. See record_torch.py."""

import time

import numpy as np
import torch

import datasets
import models
from trace_writer import TraceWriter

_TORCH_DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def _microseconds(since):
    return (time.perf_counter() - since) * 1e6


class _ReadyTimes:
    """Notes when each parameter's gradient is complete, in microseconds since backward began."""

    def __init__(self, parameters):
        self._start = 0.0
        self.us = np.zeros(len(parameters), np.float32)
        for index, parameter in enumerate(parameters):
            # Before PyTorch 2.1 the nearest thing is the hook that sees the gradient just before it
            # is stored.
            register = getattr(parameter, "register_post_accumulate_grad_hook",
                               parameter.register_hook)
            register(lambda _, index=index: self._note(index))

    def _note(self, index):
        self.us[index] = _microseconds(self._start)

    def start(self):
        self.us[:] = 0
        self._start = time.perf_counter()
        return self._start


def make_optimizer(parameters, settings):
    """The torch.optim optimizer that `settings` names; the caller sets lr before each step."""
    # fused or for-each variants may round differently from version to version
    common = {"lr": 0.0, "weight_decay": settings["weight_decay"], "foreach": False}
    if settings["kind"] == "sgd":
        return torch.optim.SGD(parameters,
                               momentum=settings["momentum"],
                               dampening=settings["dampening"],
                               nesterov=settings["nesterov"],
                               **common)
    kind = torch.optim.Adam if settings["kind"] == "adam" else torch.optim.AdamW
    return kind(parameters, betas=tuple(settings["betas"]), eps=settings["eps"], **common)


def evenly_spaced(count, total):
    """Up to `count` indices below `total`, evenly spread, the first and the last among them."""
    return [int(i) for i in np.unique(np.linspace(0, total - 1, count).round().astype(int))]


class Recording:
    """One run. `options`: record_torch.py's checked arguments; `settings`: the optimizer object."""

    def __init__(self, options, data, settings, learning_rates):
        self.options, self.data, self.settings = options, data, settings
        self.learning_rates = learning_rates
        torch.manual_seed(options.seed)
        text = data.name == "text"
        self.model, self.graph = models.build(options.model, options.hidden,
                                              data.train_inputs.shape[1], data.classes,
                                              data.train_inputs.shape[1] if text else None)
        self.names = [name for name, _ in self.model.named_parameters()]
        self.parameters = [parameter for _, parameter in self.model.named_parameters()]
        self.optimizer = make_optimizer(self.parameters, settings)
        self.dtype = options.dtype.upper()
        parts = datasets.shards(data.train_labels, options.workers, options.shards, options.seed)
        self.batches = datasets.batches(parts, options.steps, options.batch, options.seed)
        kept = options.sample_tensors or len(self.names)
        self.kept_tensors = evenly_spaced(min(kept, len(self.names)), len(self.names))
        self.kept_steps = evenly_spaced(min(options.sample_steps or options.steps, options.steps),
                                        options.steps)
        self.whole_model = len(self.kept_tensors) == len(self.names)
        self.sampled = not self.whole_model or len(self.kept_steps) < options.steps

    def _inputs(self, rows):
        if self.data.name == "text":
            return torch.from_numpy(rows.astype(np.int64))
        return torch.from_numpy(rows.astype(np.float32)) * self.data.input_scale

    def _logits_and_loss(self, inputs, labels):
        logits = self.model(self._inputs(inputs)).flatten(0, -2)
        labels = torch.from_numpy(labels.astype(np.int64)).flatten()
        return logits, labels, torch.nn.functional.cross_entropy(logits, labels)

    def evaluate(self):
        """(mean loss in nats, accuracy) over the evaluation set."""
        with torch.no_grad():
            logits, labels, loss = self._logits_and_loss(self.data.eval_inputs,
                                                         self.data.eval_labels)
            return float(loss), float((logits.argmax(1) == labels).double().mean())

    def _worker_gradients(self, step, rank, ready, timing):
        """This worker's gradients, rounded to the stored type and widened, and its batch's loss."""
        rows = self.batches[step, rank]
        self.optimizer.zero_grad(set_to_none=True)
        start = time.perf_counter()
        _, _, loss = self._logits_and_loss(self.data.train_inputs[rows],
                                           self.data.train_labels[rows])
        timing["forward_us"][step, rank] = _microseconds(start)
        start = ready.start()
        loss.backward()
        timing["backward_us"][step, rank] = _microseconds(start)
        timing["ready_us"][step, rank] = ready.us
        dtype = _TORCH_DTYPES[self.dtype]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        return [gradient.to(dtype).float() for gradient in gradients], float(loss.detach())

    def _update(self, step, total, timing):
        """Averages, clips and applies one step's summed gradients."""
        for parameter, gradient in zip(self.parameters, total):
            parameter.grad = gradient / self.options.workers
        start = time.perf_counter()
        if self.settings["clip_global_norm"] is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.settings["clip_global_norm"])
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rates[step]
        self.optimizer.step()
        timing["optimizer_us"][step] = _microseconds(start)

    def _train(self, writer):
        """All steps; returns the timing arrays and the mean training loss of each step."""
        steps, world, count = self.options.steps, self.options.workers, len(self.names)
        timing = {
            "ready_us": np.zeros((steps, world, count), np.float32),
            "forward_us": np.zeros((steps, world), np.float32),
            "backward_us": np.zeros((steps, world), np.float32),
            "optimizer_us": np.zeros(steps, np.float32)
        }
        ready, losses = _ReadyTimes(self.parameters), []
        recorded = {step: index for index, step in enumerate(self.kept_steps)}
        for _ in range(3):  # the first passes are slow; their gradients are dropped
            self._worker_gradients(0, 0, ready, timing)
        for step in range(steps):
            total, loss_sum = None, 0.0
            for rank in range(world):
                gradients, loss = self._worker_gradients(step, rank, ready, timing)
                if step in recorded:
                    writer.step(recorded[step], rank,
                                {self.names[i]: gradients[i] for i in self.kept_tensors})
                total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
                loss_sum += loss
            self._update(step, total, timing)
            losses.append(round(loss_sum / world, 6))
        return timing, losses

    def _weights(self):
        return {self.names[i]: self.parameters[i] for i in self.kept_tensors}

    def _sample(self):
        """The trace's `sample` object."""
        return {
            "training_steps": self.options.steps,
            "step_numbers": self.kept_steps,
            "model_tensors": len(self.names),
            "model_parameters": sum(p.numel() for p in self.parameters)
        }

    def _final_weights_follow(self):
        """Whether the recorded gradients alone lead from the initial to the final weights."""
        norm_known = self.settings["clip_global_norm"] is None or self.whole_model
        return norm_known and len(self.kept_steps) == self.options.steps

    def _write_parts(self, writer, timing, losses):
        rows, columns = np.array(self.kept_steps), np.array(self.kept_tensors)
        timing = {name: array[rows] for name, array in timing.items()}
        timing["ready_us"] = timing["ready_us"][:, :, columns]
        writer.timing(timing)
        if self._final_weights_follow():
            writer.weights("final", self._weights())
        if not self.sampled:
            narrow = np.uint16 if len(self.data.train_inputs) <= 65536 else np.int32
            arrays = {
                name: getattr(self.data, name)
                for name in ("train_inputs", "train_labels", "eval_inputs", "eval_labels")
            }
            arrays["batches"] = self.batches.astype(narrow)
            writer.data(arrays,
                        name=self.data.name,
                        input_scale=self.data.input_scale,
                        classes=self.data.classes)
        loss, accuracy = self.evaluate()
        writer.results(final_eval_loss=loss,
                       final_eval_accuracy=accuracy,
                       eval_count=len(self.data.eval_inputs),
                       train_loss=[losses[step] for step in self.kept_steps])
        return loss, accuracy

    def write(self, directory, provenance):
        """Trains and writes; returns (evaluation loss, accuracy). Raises TraceError, OSError."""
        graph = None if self.sampled else self.graph
        fields = {
            "loss": "cross_entropy",
            "model": {
                "kind": self.options.model,
                "parameters": sum(p.numel() for p in self.parameters),
                "graph": graph
            },
            "provenance": provenance,
            "license": self.data.license
        }
        if self.sampled:
            fields["sample"] = self._sample()
        with TraceWriter(
                directory,
                tensors={self.names[i]: self.parameters[i].shape for i in self.kept_tensors},
                world_size=self.options.workers,
                learning_rates=[self.learning_rates[i] for i in self.kept_steps],
                optimizer=self.settings,
                dtype=self.dtype,
                name=self.options.name,
                **fields) as writer:
            writer.weights("initial", self._weights())
            timing, losses = self._train(writer)
            return self._write_parts(writer, timing, losses)
