import type { Automation, TestFilterResponse } from '@runyard/contract/automations/automations';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useId, useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { DetailPage } from '../../frame/detail-page.tsx';
import { Page } from '../../frame/page.tsx';
import { useAttempts } from '../../parts/attempt.ts';
import { Fields, Hint, Note, Row, Split, Text } from '../../parts/blocks.tsx';
import { Button, ButtonLink, Input } from '../../parts/controls.tsx';
import { tellWaiting } from '../../parts/executor-field.tsx';
import { Field, Form, type OnceHeaders, textOf } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { rulesOf } from '../../parts/notify-field.tsx';
import { Problem } from '../../parts/problem.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { showToast } from '../../parts/toast.tsx';
import styles from './automations.module.css';
import { FilterTest } from './filter-test.tsx';
import { History } from './history.tsx';
import { configOf, StartFields, startOf } from './start-fields.tsx';
import { TriggerFields } from './trigger-fields.tsx';
import { type Draft, draftOf, missingIn, newDraft, triggerOf, type WebhookDraft } from './triggers.ts';

const route = getRouteApi('/shell/factories/$factoryUid/automations/$automationUid');

/**
 * Shows one automation, or the form for a new automation (`new`). The screen shows when the automation fires, whether a given delivery
 * would fire the automation, and with whose rights its runs are executed.
 */
export function AutomationScreen() {
  const { factoryUid, automationUid } = route.useParams();
  const isNew = automationUid === 'new';
  const automation = useRead(
    ['automation', automationUid],
    (client) => client.getAutomation({ params: { factoryUid, automationUid } }),
    { enabled: !isNew },
  );
  const crumbs = (
    <Crumb to="/factories/$factoryUid" params={{ factoryUid }}>
      Factory
    </Crumb>
  );
  if (isNew) return <Editor key="new" factoryUid={factoryUid} automation={undefined} crumbs={crumbs} />;
  return (
    <DetailPage what="automation" crumbs={crumbs} query={automation}>
      {(data) => <Editor key={automationUid} factoryUid={factoryUid} automation={data} crumbs={crumbs} />}
    </DetailPage>
  );
}

function Editor({
  factoryUid,
  automation,
  crumbs,
}: {
  factoryUid: string;
  automation: Automation | undefined;
  crumbs: ReactNode;
}) {
  const client = useClient();
  const may = useMay('member');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = useId();
  const [drafts, setDrafts] = useState<readonly Draft[]>(
    () => automation?.triggers.map(draftOf) ?? [newDraft('webhook')],
  );
  // The filter of this trigger is tested. It is the webhook trigger that the person has edited last.
  const [testedIndex, setTestedIndex] = useState(() => drafts.findIndex(({ kind }) => kind === 'webhook'));
  const [tested, setTested] = useState<TestFilterResponse | undefined>();
  const { error, attempt } = useAttempts();
  const [isBusy, setBusy] = useState(false);
  const { person } = useSession();
  const focusName = () => document.getElementById(form)?.querySelector<HTMLElement>('[name=name]')?.focus();
  useKeys([{ key: 'e', does: 'Edit the automation', run: focusName }]);
  const webhooks = useRead(
    ['factory', factoryUid, 'webhooks'],
    async (client) => (await client.listWebhooks({ params: { factoryUid } })).webhooks,
  );
  const testedDraft = drafts[testedIndex];
  const change = (index: number, draft: Draft) => {
    setDrafts(drafts.with(index, draft));
    if (draft.kind === 'webhook') setTestedIndex(index);
  };
  const add = (kind: 'webhook' | 'schedule') => {
    setDrafts([...drafts, newDraft(kind)]);
    if (kind === 'webhook') setTestedIndex(drafts.length);
  };
  const remove = (index: number) => {
    const left = drafts.toSpliced(index, 1);
    setDrafts(left);
    setTestedIndex(left.findIndex(({ kind }) => kind === 'webhook'));
  };
  const save = async (data: FormData, headers: OnceHeaders) => {
    const body = {
      name: textOf(data, 'name') ?? '',
      prompt: String(data.get('prompt') ?? ''),
      enabled: automation?.enabled ?? true,
      triggers: drafts.map(triggerOf),
      ...startOf(data, automation?.config),
      notify: rulesOf(data, automation?.notify, person.uid),
    };
    const saved =
      automation === undefined
        ? await client.createAutomation({ params: { factoryUid }, body, headers: { ...headers } })
        : await client.updateAutomation({ params: { factoryUid, automationUid: automation.uid }, body });
    await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    await queries.invalidateQueries({ queryKey: ['automation', saved.uid] });
    showToast(`Saved ${saved.name}`);
    tellWaiting(saved.waiting);
    if (automation === undefined)
      await navigate({
        to: '/factories/$factoryUid/automations/$automationUid',
        params: { factoryUid, automationUid: saved.uid },
      });
  };
  const toggle = async () => {
    if (automation === undefined) return;
    const params = { factoryUid, automationUid: automation.uid };
    const set = async (enabled: boolean) => {
      const { name, prompt, agent, triggers, config, overlap, concurrency_key: group } = automation;
      await client.updateAutomation({
        params,
        body: {
          name,
          prompt,
          triggers,
          enabled,
          overlap,
          ...(agent === undefined ? {} : { agent }),
          ...(config === undefined ? {} : { config: configOf(config) }),
          ...(group === undefined ? {} : { concurrency_key: group }),
        },
      });
      await queries.invalidateQueries({ queryKey: ['automation', automation.uid] });
    };
    if (await attempt(() => set(!automation.enabled)))
      showToast(
        `${automation.enabled ? 'Disabled' : 'Enabled'} ${automation.name}`,
        () => void attempt(() => set(automation.enabled)),
      );
  };
  const missing = drafts.map(missingIn).find((each) => each !== undefined);
  return (
    <Page
      title={automation?.name ?? 'New automation'}
      crumbs={crumbs}
      actions={
        automation && (
          <>
            <ButtonLink to="/runs" search={{ automation_id: automation.uid }}>
              Its runs
            </ButtonLink>
            <RoleButton needs="member" run={() => void toggle()}>
              {automation.enabled ? 'Disable' : 'Enable'}
            </RoleButton>
            <AskButton
              needs="member"
              kind="danger"
              question={{
                title: `Delete ${automation.name}?`,
                text: 'Events start no more runs of it. Runs that it has started stay.',
                action: 'Delete the automation',
                run: async () => {
                  await client.deleteAutomation({ params: { factoryUid, automationUid: automation.uid } });
                  await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
                  await navigate({ to: '/factories/$factoryUid', params: { factoryUid } });
                },
              }}
            >
              Delete…
            </AskButton>
          </>
        )
      }
    >
      <Split>
        <Form id={form} frame="none" send={save} onBusy={setBusy}>
          <Fields>
            {(automation?.problems ?? []).map((problem, index) => (
              <Note key={index} tone="wait">
                <Icon name="warn" />
                <span>{visibleText(typeof problem === 'string' ? problem : JSON.stringify(problem))}</span>
              </Note>
            ))}
            {automation?.last_spawn_error && (
              <Note as="p" tone="bad">
                {visibleText(automation.last_spawn_error)}
              </Note>
            )}
            <Field label="Name" path="name">
              {(control) => <Input {...control} name="name" required maxLength={100} defaultValue={automation?.name} />}
            </Field>
            {drafts.map((draft, index) => (
              <TriggerFields
                key={index}
                draft={draft}
                index={index}
                webhooks={webhooks.data}
                checks={index === testedIndex ? (tested?.checks ?? []) : []}
                change={(next) => change(index, next)}
                remove={drafts.length > 1 ? () => remove(index) : undefined}
              />
            ))}
            <Row wrap>
              <Text tone="muted" small>
                Or start it also
              </Text>
              <Button small icon="plus" onClick={() => add('webhook')}>
                On events of a webhook
              </Button>
              <Button small icon="plus" onClick={() => add('schedule')}>
                At times
              </Button>
            </Row>
            <Field label="Then a run gets this prompt" path="prompt">
              {(control) => (
                <Input {...control} name="prompt" as="textarea" rows={8} required defaultValue={automation?.prompt} />
              )}
            </Field>
            <StartFields factoryUid={factoryUid} automation={automation} />
            <Problem error={error} />
          </Fields>
          <div className={styles.saveBar}>
            <RoleButton needs="member" kind="primary" disabled={isBusy || missing !== undefined}>
              {automation === undefined ? 'Create automation' : 'Save'}
            </RoleButton>
            {missing !== undefined && <Hint>{missing}</Hint>}
            {!may && <Hint>Your role is viewer: a member can change automations.</Hint>}
          </div>
        </Form>
        <div>
          <FilterTest
            factoryUid={factoryUid}
            automation={automation}
            draft={testedDraft?.kind === 'webhook' ? testedDraft : undefined}
            change={(draft: WebhookDraft) => change(testedIndex, draft)}
            result={tested}
            setResult={setTested}
          />
          {automation && <History factoryUid={factoryUid} automation={automation} />}
        </div>
      </Split>
    </Page>
  );
}
