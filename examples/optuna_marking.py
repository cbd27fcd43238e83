"""Let Optuna search for the marking threshold under which queries are answered soonest; the store keeps every trial.

    python examples/optuna_marking.py [TRIALS]

A search asks for a value, has it simulated, and tells what came out. Each trial is a sweep of one point with five seeds: a
search that is repeated finds its trials in the store, and workers are used for the seeds of one trial.
"""

import sys
from pathlib import Path

import optuna

import fanin

optuna.logging.set_verbosity(optuna.logging.WARNING)
demo = fanin.Scenario.from_file(Path(__file__).parents[1] / "scenarios" / "demo.toml")
scenario = demo.replace({"traffic[0].stop": "2ms", "traffic[1].stop": "2ms"})
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
    trial = study.ask()
    k = f"{trial.suggest_int('k', 1, 200, log=True)} packets"
    sweep = fanin.sweep(scenario, "out/optuna", design={"list": [{"switch.marking.k": k}], "seeds": 5}, progress=False)
    study.tell(trial, float(sweep.values("queries.p99_ps")["value"].to_numpy().mean()) / 1e9)
    print(f"{k:>12}: {study.trials[-1].value:.3f} ms")
print(f"best: k = {study.best_params['k']} packets, {study.best_value:.3f} ms")
