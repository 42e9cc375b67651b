import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useId, useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { encodeFile, FileChips, FilePicker, useAttachedFiles } from '../../parts/attached-files.tsx';
import { Content, Hint, P, Pad, Row, Segments, Stack, TextLink } from '../../parts/blocks.tsx';
import { Button, ButtonLink, Input } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Field, Form, type OnceHeaders } from '../../parts/form.tsx';
import { keyText } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Choices } from './choices.tsx';
import { FreshCheck } from './fields.tsx';
import { keepChoices, readChoices } from './last-choices.ts';
import {
  asCommand,
  asCurl,
  changesIn,
  type Draft,
  draftOfRun,
  emptyDraft,
  requestOf,
  rerunOf,
  type Sent,
} from './request.ts';

const route = getRouteApi('/shell/runs/new');

/** Shows the form that starts a run. If the address names a run, the form has the values of this run and reruns it. */
export function NewRunScreen() {
  const search = route.useSearch();
  const runId = oneOf(search.rerun);
  const changes = changesIn(oneOf(search.prompt), oneOf(search.fresh));
  const run = useRead(['run to rerun', runId], (client) => client.getRun({ params: { runId: runId ?? '' } }), {
    enabled: runId !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page title={runId === undefined ? 'New run' : 'Rerun'} crumbs={<Crumb to="/runs">Runs</Crumb>}>
      {run.error ? (
        <Pad>
          <Problem error={run.error} onRetry={() => void run.refetch()} />
        </Pad>
      ) : runId !== undefined && run.data === undefined ? (
        <SkeletonRows />
      ) : (
        <RunForm key={runId} rerunOf={run.data} changes={changes} />
      )}
    </Page>
  );
}

/** Stands for a file in the commands of the page: the bytes of the file would make them unreadable. */
const placeholderOf = ({ name, type }: File) => ({
  file_name: name,
  mime_type: type || 'application/octet-stream',
  data: 'BASE64_OF_THE_FILE',
});

/** Shows the request of the form as a command for a shell. */
function Elsewhere({ draft, request, isRerun }: { draft: Draft; request: Sent; isRerun: boolean }) {
  const [wording, setWording] = useState<'curl' | 'command'>('curl');
  return (
    <Stack as="section" gap={2} aria-label="The same request elsewhere">
      <Segments as="div" start>
        <Button kind="ghost" small aria-pressed={wording === 'curl'} onClick={() => setWording('curl')}>
          As curl
        </Button>
        <Button kind="ghost" small aria-pressed={wording === 'command'} onClick={() => setWording('command')}>
          As command
        </Button>
      </Segments>
      <CommandBlock
        command={wording === 'curl' ? asCurl(request, location.origin) : asCommand(draft, request, isRerun)}
      />
    </Stack>
  );
}

/** The form in which a person chooses the configuration of a run, its environment and its maximum cost. */
function RunForm({ rerunOf: earlier, changes }: { rerunOf: RunItem | undefined; changes: Partial<Draft> }) {
  const client = useClient();
  const may = useMay('member');
  const navigate = useNavigate();
  const { person, team } = useSession();
  const initial = earlier === undefined ? { ...emptyDraft, ...readChoices(person.uid, team.uid) } : draftOfRun(earlier);
  const [draft, setDraft] = useState<Draft>({ ...initial, ...changes });
  const [isBusy, setBusy] = useState(false);
  const form = useId();
  const attached = useAttachedFiles();
  const change = (members: Partial<Draft>) => setDraft((before) => ({ ...before, ...members }));
  const start = async (_: FormData, headers: OnceHeaders) => {
    const sent = { ...headers, 'x-oz-api-source': 'WEB_APP' } as const;
    const created =
      earlier === undefined
        ? await client.createRun({
            body: requestOf(draft, await Promise.all(attached.files.map(encodeFile))),
            headers: sent,
          })
        : await client.rerunRun({ params: { runId: earlier.run_id }, body: rerunOf(draft, earlier), headers: sent });
    if (earlier === undefined) keepChoices(person.uid, team.uid, draft);
    await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
    event.preventDefault();
    (event.target as HTMLElement).closest('form')?.requestSubmit();
  };
  const request: Sent =
    earlier === undefined
      ? { path: '/agent/runs', body: requestOf(draft, attached.files.map(placeholderOf)) }
      : { path: `/agent/runs/${earlier.run_id}/rerun`, body: rerunOf(draft, earlier) };
  const isEmpty =
    draft.prompt.trim() === '' && draft.skill.trim() === '' && (earlier === undefined || initial.prompt !== '');
  const title = (
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
        <Input
          {...control}
          maxLength={500}
          value={draft.title}
          onChange={({ target }) => change({ title: target.value })}
        />
      )}
    </Field>
  );
  return (
    <>
      <Form id={form} frame="content" send={start} onBusy={setBusy} onKeyDown={onKeyDown}>
        {earlier && (
          <P tone="muted">
            {'A rerun of '}
            <TextLink to="/runs/$runId" params={{ runId: earlier.run_id }}>
              {visibleText(earlier.title)}
            </TextLink>
            . It keeps identity, mode, attachments, metadata, and all settings that this form does not show.
          </P>
        )}
        <Field label="Prompt" path="prompt">
          {(control) => (
            <Input
              {...control}
              as="textarea"
              rows={10}
              required={earlier === undefined && draft.skill.trim() === ''}
              placeholder="What should the agent do?"
              value={draft.prompt}
              onChange={({ target }) => change({ prompt: target.value })}
              {...(earlier === undefined ? { onPaste: attached.onPaste, onDrop: attached.onDrop } : {})}
            />
          )}
        </Field>
        {earlier === undefined && (
          <Row wrap>
            <FilePicker add={attached.add}>
              {(choose) => (
                <Button small icon="clip" onClick={choose}>
                  Attach files
                </Button>
              )}
            </FilePicker>
            {attached.files.length === 0 && <Hint notNarrow>or paste files and images into the prompt</Hint>}
            <FileChips {...attached} />
          </Row>
        )}
        <Problem error={attached.problem} />
        <Choices draft={draft} change={change} isRerun={earlier !== undefined} title={title} />
        {draft.environment !== '' && <FreshCheck isOn={draft.isFresh} set={(isFresh) => change({ isFresh })} />}
        <Row>
          <RoleButton needs="member" kind="primary" icon="play" disabled={isBusy || isEmpty}>
            {earlier === undefined ? 'Start run' : 'Rerun'} <kbd>{keyText('mod+Enter')}</kbd>
          </RoleButton>
          <ButtonLink
            to="/schedules"
            title="A schedule with this prompt, model and environment"
            search={{ new: 'true', prompt: draft.prompt, model: draft.model, environment: draft.environment }}
          >
            As schedule
          </ButtonLink>
          {!may && <Hint>Your role is viewer: a member can start runs.</Hint>}
        </Row>
      </Form>
      <Content>
        <Elsewhere draft={draft} request={request} isRerun={earlier !== undefined} />
      </Content>
    </>
  );
}
