import { harnessTypes } from '@runyard/contract/agent/harness-presets/presets';
import type { RunItem } from '@runyard/contract/runs/runs';
import { approvalPolicies } from '@runyard/contract/wire/choices';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useId, useState } from 'react';
import { useEnvironments, useIdentities } from '../../api/lists.ts';
import { useClient, useMay } from '../../api/session.ts';
import { useUsableModels } from '../../api/usable-models.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Field, Form, type OnceHeaders } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { keyText } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Elsewhere } from './elsewhere.tsx';
import { Amount, FreshCheck } from './fields.tsx';
import { changesIn, type Draft, draftOfRun, emptyDraft, requestOf, rerunOf, type Sent } from './request.ts';

const route = getRouteApi('/shell/runs/new');

/** Shows the form that starts a run. If the address names a run, the form has the values of this run and reruns it. */
export function NewRunScreen() {
  const client = useClient();
  const search = route.useSearch();
  const runId = oneOf(search.rerun);
  const changes = changesIn(oneOf(search.prompt), oneOf(search.fresh));
  const run = useQuery({
    queryKey: ['run to rerun', runId],
    queryFn: async () => await client.getRun({ params: { runId: runId ?? '' } }),
    enabled: runId !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page
      title={runId === undefined ? 'New run' : 'Rerun'}
      crumbs={
        <Link to="/runs" className="hide-m">
          Runs
        </Link>
      }
    >
      {run.error ? (
        <div className="pad">
          <Problem error={run.error} onRetry={() => void run.refetch()} />
        </div>
      ) : runId !== undefined && run.data === undefined ? (
        <SkeletonRows />
      ) : (
        <RunForm key={runId} rerunOf={run.data} changes={changes} />
      )}
    </Page>
  );
}

/** The form in which a person chooses the configuration of a run, its environment and its maximum cost. */
function RunForm({ rerunOf: earlier, changes }: { rerunOf: RunItem | undefined; changes: Partial<Draft> }) {
  const client = useClient();
  const may = useMay('member');
  const navigate = useNavigate();
  const initial = earlier === undefined ? emptyDraft : draftOfRun(earlier);
  const [draft, setDraft] = useState<Draft>({ ...initial, ...changes });
  const [isBusy, setBusy] = useState(false);
  const form = useId();
  const models = useUsableModels();
  const environments = useEnvironments();
  const identities = useIdentities();
  const set = (name: Exclude<keyof Draft, 'isFresh'>) => (value: string) => {
    setDraft((before) => ({ ...before, [name]: value }));
  };
  const start = async (_: FormData, headers: OnceHeaders) => {
    const sent = { ...headers, 'x-oz-api-source': 'WEB_APP' } as const;
    const created =
      earlier === undefined
        ? await client.createRun({ body: requestOf(draft), headers: sent })
        : await client.rerunRun({ params: { runId: earlier.run_id }, body: rerunOf(draft, earlier), headers: sent });
    await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    (event.target as HTMLElement).closest('form')?.requestSubmit();
  };
  const model = models.data?.models.find(({ id }) => id === (draft.model || models.data?.default_model_id));
  const request: Sent =
    earlier === undefined
      ? { path: '/agent/runs', body: requestOf(draft) }
      : { path: `/agent/runs/${earlier.run_id}/rerun`, body: rerunOf(draft, earlier) };
  const isEmpty = draft.prompt.trim() === '' && (earlier === undefined || initial.prompt !== '');
  return (
    <>
      <Form id={form} className="wide" send={start} onBusy={setBusy} onKeyDown={onKeyDown}>
        {earlier && (
          <p className="mut">
            {'A rerun of '}
            <Link className="link" to="/runs/$runId" params={{ runId: earlier.run_id }}>
              {visibleText(earlier.title)}
            </Link>
            . It keeps identity, mode, attachments, metadata, and all settings that this form does not show.
          </p>
        )}
        <Field label="Prompt" path="prompt">
          {(control) => (
            <textarea
              {...control}
              className="in"
              rows={10}
              required={earlier === undefined}
              placeholder="What should the agent do?"
              value={draft.prompt}
              onChange={({ target }) => set('prompt')(target.value)}
            />
          )}
        </Field>
        <div className="three">
          <Field
            label="Model"
            path="config.model_id"
            hint={
              model?.cost
                ? `$${model.cost.input_usd_per_mtok} read, $${model.cost.output_usd_per_mtok} written, for a million tokens`
                : model?.description?.split('. ')[0]
            }
          >
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.model}
                onChange={({ target }) => set('model')(target.value)}
              >
                <option value="">{`the default: ${models.data?.default_model_id ?? '…'}`}</option>
                {draft.model !== '' && !models.data?.models.some(({ id }) => id === draft.model) && (
                  <option value={draft.model}>{visibleText(draft.model)}</option>
                )}
                {(models.data?.models ?? []).map((each) => (
                  <option key={each.id} value={each.id}>
                    {visibleText(each.display_name)}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Environment" path="config.environment_id">
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.environment}
                onChange={({ target }) => set('environment')(target.value)}
              >
                <option value="">none: an empty workspace</option>
                {draft.environment !== '' && !environments.data?.some(({ uid }) => uid === draft.environment) && (
                  <option value={draft.environment}>{draft.environment}</option>
                )}
                {(environments.data ?? []).map(({ uid, config }) => (
                  <option key={uid} value={uid}>
                    {visibleText(config.name ?? uid)}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {earlier === undefined && (
            <Field label="Acts as" path="agent_identity_uid">
              {(control) => (
                <select
                  {...control}
                  className="in"
                  value={draft.identity}
                  onChange={({ target }) => set('identity')(target.value)}
                >
                  <option value="">you</option>
                  {(identities.data ?? []).map(({ uid, name }) => (
                    <option key={uid} value={uid}>
                      {visibleText(name)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
        </div>
        <div className="three">
          <Field label="Approvals" path="config.approval_policy" hint="ask: it waits before each command and change">
            {(control) => (
              <select
                {...control}
                className="in"
                value={draft.approval}
                onChange={({ target }) => set('approval')(target.value)}
              >
                <option value="">auto-approve, the default</option>
                {approvalPolicies
                  .filter((policy) => policy !== 'auto-approve')
                  .map((policy) => (
                    <option key={policy}>{policy}</option>
                  ))}
              </select>
            )}
          </Field>
          {earlier === undefined && (
            <Field label="Mode" path="mode">
              {(control) => (
                <select
                  {...control}
                  className="in"
                  value={draft.mode}
                  onChange={({ target }) => set('mode')(target.value)}
                >
                  <option value="">normal</option>
                  <option value="plan">plan: changes nothing, answers with a plan</option>
                  <option value="orchestrate">orchestrate: may start child runs</option>
                </select>
              )}
            </Field>
          )}
          <Field label="Harness" path="config.harness.type">
            {(control) => (
              <input
                {...control}
                className="in"
                placeholder="oz"
                list="harnesses"
                value={draft.harness}
                onChange={({ target }) => set('harness')(target.value)}
              />
            )}
          </Field>
        </div>
        <datalist id="harnesses">
          {harnessTypes.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <div className="three">
          <Field label="At most, US dollars" path="config.max_cost_usd">
            {(control) => <Amount control={control} step="0.01" value={draft.cost} change={set('cost')} />}
          </Field>
          <Field label="At most, minutes" path="config.max_duration_minutes">
            {(control) => <Amount control={control} step="1" value={draft.minutes} change={set('minutes')} />}
          </Field>
          <Field label="At most, turns" path="config.max_turns">
            {(control) => <Amount control={control} step="1" value={draft.turns} change={set('turns')} />}
          </Field>
        </div>
        {draft.environment !== '' && (
          <FreshCheck isOn={draft.isFresh} set={(isFresh) => setDraft((before) => ({ ...before, isFresh }))} />
        )}
        <Field
          label="Title"
          path="title"
          hint={
            earlier === undefined
              ? 'Absent: the first line of the prompt'
              : 'Absent: as before, or the first line of a changed prompt'
          }
        >
          {(control) => (
            <input
              {...control}
              className="in"
              maxLength={500}
              value={draft.title}
              onChange={({ target }) => set('title')(target.value)}
            />
          )}
        </Field>
        <div className="row">
          <RoleButton needs="member" className="btn pri" disabled={isBusy || isEmpty}>
            <Icon name="play" small />
            {earlier === undefined ? 'Start run' : 'Rerun'} <kbd>{keyText('mod+Enter')}</kbd>
          </RoleButton>
          <Link
            className="btn"
            to="/schedules"
            title="A schedule with this prompt, model and environment"
            search={{ new: 'true', prompt: draft.prompt, model: draft.model, environment: draft.environment }}
          >
            As schedule
          </Link>
          {!may && <span className="hint">Your role is viewer: a member can start runs.</span>}
        </div>
      </Form>
      <div className="wide">
        <Elsewhere draft={draft} request={request} isRerun={earlier !== undefined} />
      </div>
    </>
  );
}
