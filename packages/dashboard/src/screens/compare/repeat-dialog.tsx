import { comparisonRequest, maxComparedRuns, outlookOf, type Variant, variantsOf } from '@runyard/client/comparison';
import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useRef } from 'react';
import { PlainFailure } from '../../api/problem.ts';
import { useClient } from '../../api/session.ts';
import { useUsableModels } from '../../api/usable-models.ts';
import { P } from '../../parts/blocks.tsx';
import { CheckGroup } from '../../parts/check-group.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { TextField, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { countText, dollarText } from '../../parts/format.ts';

/** The runs that a person wants to start: each run in each variant, `times` times. */
export interface Plan {
  readonly runs: readonly RunItem[];
  readonly variants: readonly Variant[];
  readonly times: number;
}

const sizeOf = ({ runs, variants, times }: Plan): number => runs.length * variants.length * times;

/** Asks with which models, harnesses, skills and prompt the runs are repeated, and how often. */
export function RepeatForm({
  runs,
  planned,
  close,
}: {
  runs: readonly RunItem[];
  planned: (plan: Plan) => void;
  close: () => void;
}) {
  const { data: models } = useUsableModels();
  const send = async (data: FormData) => {
    const prompt = textOf(data, 'prompt');
    const plan: Plan = {
      runs,
      variants: variantsOf({
        model: data.getAll('model').map(String),
        harness: data.getAll('harness').map(String),
        skill: (textOf(data, 'config.skill_spec') ?? '').split(/\s+/).filter(Boolean),
        ...(prompt === undefined ? {} : { prompt: [prompt] }),
      }),
      times: Number(textOf(data, 'times') ?? 1),
    };
    const count = sizeOf(plan);
    if (count + runs.length > maxComparedRuns)
      throw new PlainFailure(
        `These are ${count} new runs. A comparison has at most ${maxComparedRuns} runs with the originals.`,
      );
    planned(plan);
  };
  return (
    <FormDialog title="Repeat these runs" action="Next: the cost" send={send} close={close}>
      <P tone="muted">
        The new runs begin at the commits of the originals. Their sandboxes can neither push nor open pull requests.
      </P>
      <CheckGroup
        legend="With these models"
        name="model"
        path="config.model_id"
        options={(models?.models ?? []).map(({ id, display_name: name }) => [id, name] as const)}
        chosen={[]}
      />
      <CheckGroup
        legend="With these harnesses"
        name="harness"
        path="config.harness.type"
        options={[builtinHarness, ...presetTypes].map((type) => [type, type] as const)}
        chosen={[]}
      />
      <TextField
        label="With these skills"
        path="config.skill_spec"
        placeholder="owner/repo:name"
        hint="With a space between two skills. Empty: the skills of each run"
      />
      <TextField label="With this prompt" path="prompt" hint="Empty: the prompt of each run" />
      <TextField label="How often" path="times" type="number" min={1} max={20} step={1} defaultValue={1} />
    </FormDialog>
  );
}

/** Asks whether the runs may be started, with their cost, and starts them. A run that is refused does not stop the others. */
export function StartDialog({
  plan,
  started,
  close,
}: {
  plan: Plan;
  started: (runIds: readonly string[]) => void;
  close: () => void;
}) {
  const client = useClient();
  /** Runs that an earlier press of the button has started, by their place in the plan. */
  const created = useRef(new Map<string, string>());
  const { runs, variants, times } = plan;
  const start = async () => {
    const failures: unknown[] = [];
    for (const run of runs)
      for (const variant of variants)
        for (let time = 0; time < times; time += 1) {
          const place = JSON.stringify([run.run_id, variant, time]);
          if (created.current.has(place)) continue;
          const body = comparisonRequest(run, variant);
          const answer = client.rerunRun({ params: { runId: run.run_id }, body });
          await answer.then(
            ({ run_id: id }) => created.current.set(place, id),
            (error: unknown) => failures.push(error),
          );
        }
    if (created.current.size > 0) started([...created.current.values()]);
    if (failures.length > 0) throw failures[0];
  };
  const { costUsd, reach } = outlookOf(runs, variants.length * times);
  return (
    <ConfirmDialog
      title={`Start ${countText(sizeOf(plan), 'run')}?`}
      action="Start the runs"
      safe="Start nothing"
      run={start}
      close={close}
    >
      {`At the cost of the originals, they cost about ${dollarText(costUsd)} together.`}
      {reach.length > 0 && ` They get, and may change things with: ${visibleText(reach.join(', '))}.`}
    </ConfirmDialog>
  );
}
