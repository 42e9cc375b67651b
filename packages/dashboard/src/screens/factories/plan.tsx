import type { ApplyDefinitionResponse, FactoryChange } from '@runyard/contract/factories/factory-definitions';
import { visibleText } from '@runyard/contract/wire/visible';
import { CardBody, Note, P, Stack, Text } from '../../parts/blocks.tsx';
import { Verdict, VerdictHead } from '../../parts/checks.tsx';
import { Icon } from '../../parts/icon.tsx';

const icons = { create: 'plus', change: 'diff', delete: 'x' } as const;
const words = { create: 'Creates', change: 'Changes', delete: 'Deletes' } as const;

/**
 * Shows the changes that applying the definition would make, the manual changes that it would revert, and the parts of the definition that
 * have no effect.
 */
export function Plan({
  plan: { changes, drift, notices, problems },
}: {
  plan: Pick<ApplyDefinitionResponse, 'changes' | 'drift' | 'notices' | 'problems'>;
}) {
  return (
    <Stack as="section" gap={2} aria-label="Plan" role="status">
      <h2>What it changes</h2>
      {changes.length === 0 && <P tone="dim">Nothing: the files are as they were applied last.</P>}
      <Changes changes={changes} />
      {drift.length > 0 && <h2>Changes made without files, which it reverts</h2>}
      <Changes changes={drift} />
      {problems.map(({ automation, message }) => (
        <Note key={automation + message} as="p" tone="wait">
          {visibleText(`${automation}: ${message}`)}
        </Note>
      ))}
      <Notices notices={notices} />
    </Stack>
  );
}

/** Lists changes of a factory, each with the members that change. */
export const Changes = ({ changes }: { changes: readonly FactoryChange[] }) =>
  changes.map((change) => <Change key={`${change.kind} ${change.name}`} change={change} />);

/** Lists the parts of a definition that have no effect. */
export const Notices = ({ notices }: { notices: ApplyDefinitionResponse['notices'] }) =>
  notices.map(({ file, line, message }) => (
    <Note key={`${file} ${line} ${message}`} as="p" tone="wait">
      {visibleText(`${file}:${line}: ${message}`)}
    </Note>
  ));

function Change({ change: { kind, name, action, members } }: { change: FactoryChange }) {
  const tone = ({ create: 'good', change: 'muted', delete: 'bad' } as const)[action];
  return (
    <Verdict>
      <VerdictHead>
        <Icon name={icons[action]} small tone={tone} />
        <span>
          <Text medium tone={tone}>
            {words[action]}
          </Text>
          {` the ${kind === name ? '' : `${kind} `}${visibleText(name)}`}
        </span>
      </VerdictHead>
      {members && (
        <CardBody stack gap={1} small>
          {members.map(({ member, before, after }) => (
            <p key={member}>
              <code>{visibleText(member)}</code>
              {': '}
              <Text tone="muted">{valueText(before)}</Text>
              {' → '}
              <span>{valueText(after)}</span>
            </p>
          ))}
        </CardBody>
      )}
    </Verdict>
  );
}

const maxValueLength = 300;

/** Returns a value of a member as text, cut after 300 characters. */
function valueText(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return visibleText(text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text);
}
