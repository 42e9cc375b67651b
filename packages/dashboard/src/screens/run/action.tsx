/** Shows one action of the agent: a sentence, and below it the change, the command with its output, or the answer of the tool. */

import { visibleText } from '@runyard/contract/wire/visible';
import { use, useState } from 'react';
import { CardBody, CodeBlock, CodeFoot, Dot, Fact, Facts, Hint, P, Row, Text, TextLink } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { Diff } from '../../parts/diff.tsx';
import { durationText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { usePrinted } from '../../parts/printing.ts';
import { Terminal } from '../../parts/terminal.tsx';
import { Lasting } from '../../parts/time.tsx';
import { DownloadButton } from './artifacts.tsx';
import { type ActionEntry, textOf } from './entry.ts';
import { Plan } from './plan.tsx';
import styles from './run.module.css';
import { isPatch, stepChange } from './step-change.ts';
import { membersOf, planIn, type StepWords, stepWords } from './step-words.ts';
import talk from './talk.module.css';
import { TargetContext } from './target.ts';
import { Whole } from './whole.tsx';

/** Number of lines of a change that the conversation shows before a click on "Show all". */
const firstLines = 40;

export function Action({ entry, runId }: { entry: ActionEntry; runId: string }) {
  const words = stepWords(entry);
  const change = stepChange(entry);
  const plan = words.kind === 'plan' ? planIn(entry.input) : undefined;
  const isOver = ['completed', 'denied', 'interrupted'].includes(entry.state) && (entry.exitCode ?? 0) === 0;
  const [isOpen, setOpen] = useState<boolean | undefined>();
  // The details of an action are open while the action runs, if it failed, if it changed a file, and if a link leads to it. After the reader has opened or closed
  // the details, only the reader's choice counts.
  const isTarget = use(TargetContext) === entry.seq;
  const open = usePrinted() || (isOpen ?? (isTarget || !isOver || change !== undefined || plan !== undefined));
  const object = visibleText(words.object?.split('\n', 1)[0] ?? '');
  return (
    <details className={styles.act} data-part="action" data-kind={words.kind} open={open} data-state={entry.state}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
      <summary
        onClick={(event) => {
          event.preventDefault();
          setOpen(!open);
        }}
      >
        <Icon name={words.icon} small />
        <Text className={talk.verb}>{words.verb}</Text>{' '}
        <Text mono={words.isCode} cut grow title={object}>
          {object}
          {words.kind === 'search' && words.place !== undefined && ` in ${visibleText(words.place)}`}
        </Text>
        {change && (
          <Text small number>
            <Text tone="good">+{change.added}</Text> <Text tone="bad">−{change.deleted}</Text>
          </Text>
        )}
        <ActionEnd entry={entry} />
      </summary>
      {open && (
        <>
          {plan ? (
            <Plan items={plan} />
          ) : change ? (
            <Diff lines={change.lines} first={firstLines} />
          ) : (
            <Input entry={entry} words={words} />
          )}
          {entry.output !== '' && !(change && isPatch(entry.output)) && <Terminal text={entry.output} />}
          <Whole entry={entry} runId={runId} />
          {entry.outputUid !== undefined && (
            <Row as="p" small>
              The conversation has only a part of this output. <DownloadButton uid={entry.outputUid} />
            </Row>
          )}
          <Raw entry={entry} />
        </>
      )}
    </details>
  );
}

function ActionEnd({ entry }: { entry: ActionEntry }) {
  if (entry.state === 'running')
    return (
      <Row as="span" tone="accent" small>
        <Dot />
        <span>
          running <Lasting from={entry.at} to={undefined} />
        </span>
      </Row>
    );
  const isBad = entry.state === 'failed' || (entry.exitCode ?? 0) !== 0;
  return (
    <>
      {entry.state === 'waiting' && (
        <Text tone="wait" small>
          waits for an answer
        </Text>
      )}
      {entry.state === 'interrupted' && <Hint>interrupted</Hint>}
      {entry.state === 'denied' && (
        <Text tone="bad" small>
          denied
        </Text>
      )}
      {isBad && (
        <Text tone="bad" small>
          {entry.exitCode === undefined ? 'failed' : `exit ${entry.exitCode}`}
        </Text>
      )}
      {entry.durationMs !== undefined && <Hint>{durationText(entry.durationMs)}</Hint>}
    </>
  );
}

/** Shows the whole command with its folder, the texts of a report, or the arguments of a tool as a list. */
function Input({ entry, words }: { entry: ActionEntry; words: StepWords }) {
  const members = membersOf(entry.input);
  if (words.kind === 'command')
    return (
      <CodeBlock data-part="command">
        <pre>{visibleText(words.object ?? '')}</pre>
        <CopyButton text={words.object ?? ''} what="Copy command" />
        {words.place !== undefined && (
          <CodeFoot>
            in <Text mono>{visibleText(words.place)}</Text>
          </CodeFoot>
        )}
      </CodeBlock>
    );
  const text = [members.content, members.prompt, members.message, members.question].find(
    (value): value is string => typeof value === 'string',
  );
  if (words.kind !== 'call' && text !== undefined)
    return (
      <CardBody>
        <Markdown text={text} />
        {words.kind === 'start run' && <ChildLink output={entry.output} />}
      </CardBody>
    );
  if (words.kind === 'pull request' && /^https:\/\/[^\s]+$/.test(words.object ?? ''))
    return (
      <CardBody>
        <Text as="a" link whole href={words.object} target="_blank" rel="noopener noreferrer">
          {visibleText(words.object ?? '')}
        </Text>
      </CardBody>
    );
  const others = Object.entries(members).filter(([, value]) => value !== words.object && value !== undefined);
  if (others.length === 0) return null;
  return (
    <CardBody>
      <Facts>
        {others.map(([name, value]) => (
          <Fact key={name} name={visibleText(name)}>
            <Text mono whole>
              {visibleText(argumentText(value))}
            </Text>
          </Fact>
        ))}
      </Facts>
    </CardBody>
  );
}

/** Returns an argument of a tool on one line. Lists of words are separated by commas. */
const argumentText = (value: unknown): string =>
  Array.isArray(value) && value.every((each) => typeof each !== 'object')
    ? value.join(', ')
    : typeof value === 'object'
      ? JSON.stringify(value)
      : textOf(String(value));

/** Links the run that an action started. */
function ChildLink({ output }: { output: string }) {
  const runId = /^started run ([\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12});/.exec(output)?.[1];
  if (runId === undefined) return null;
  return (
    <P>
      <TextLink to="/runs/$runId" params={{ runId }}>
        Open the child run
      </TextLink>
    </P>
  );
}

/** Shows the call as the harness reported it, after a click. */
function Raw({ entry }: { entry: ActionEntry }) {
  const [isOpen, setOpen] = useState(false);
  const { name, category, input, state, exitCode } = entry;
  return (
    <>
      <Row className={talk.raw}>
        <Hint mono cut grow>
          {visibleText(name)}
        </Hint>
        <Button kind="ghost" small aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Raw
        </Button>
      </Row>
      {isOpen && (
        <JsonView
          value={{ name, category, input, state, ...(exitCode === undefined ? {} : { exit_code: exitCode }) }}
        />
      )}
    </>
  );
}
