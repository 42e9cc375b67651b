import type { ApplyDefinitionResponse, FactoryChange } from '@runyard/contract/factories/factory-definitions';
import { visibleText } from '@runyard/contract/wire/visible';
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
    <section className="stack s2" aria-label="Plan" role="status">
      <h2>What it changes</h2>
      {changes.length === 0 && <p className="dim">Nothing: the files are as they were applied last.</p>}
      <Changes changes={changes} />
      {drift.length > 0 && <h2>Changes made without files, which it reverts</h2>}
      <Changes changes={drift} />
      {problems.map(({ automation, message }) => (
        <p key={automation + message} className="note wait">
          {visibleText(`${automation}: ${message}`)}
        </p>
      ))}
      <Notices notices={notices} />
    </section>
  );
}

/** Lists changes of a factory, each with the members that change. */
export const Changes = ({ changes }: { changes: readonly FactoryChange[] }) =>
  changes.map((change) => <Change key={`${change.kind} ${change.name}`} change={change} />);

/** Lists the parts of a definition that have no effect. */
export const Notices = ({ notices }: { notices: ApplyDefinitionResponse['notices'] }) =>
  notices.map(({ file, line, message }) => (
    <p key={`${file} ${line} ${message}`} className="note wait">
      {visibleText(`${file}:${line}: ${message}`)}
    </p>
  ));

function Change({ change: { kind, name, action, members } }: { change: FactoryChange }) {
  const colour = { create: 'okc', change: 'mut', delete: 'badc' }[action];
  return (
    <div className="verdict">
      <div className="sum">
        <Icon name={icons[action]} small className={colour} />
        <span>
          <span className={`md ${colour}`}>{words[action]}</span>
          {` the ${kind === name ? '' : `${kind} `}${visibleText(name)}`}
        </span>
      </div>
      {members && (
        <div className="card-b stack s1 small">
          {members.map(({ member, before, after }) => (
            <p key={member}>
              <code>{visibleText(member)}</code>
              {': '}
              <span className="mut">{valueText(before)}</span>
              {' → '}
              <span>{valueText(after)}</span>
            </p>
          ))}
        </div>
      )}
    </div>
  );
}

const maxValueLength = 300;

/** Returns a value of a member as text, cut after 300 characters. */
function valueText(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return visibleText(text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text);
}
