/** The last choices of a person in a team, which are the defaults of the next run. This browser keeps them. */
import { keep, readKept } from '../../api/kept.ts';
import type { Draft } from './request.ts';

/** Members that are kept. A prompt, limits and a mode are about one run. */
const members = ['model', 'harness', 'environment', 'identity', 'approval'] as const;
type Choices = Pick<Draft, (typeof members)[number]>;

const maxLength = 300;
const nameOf = (person: string, team: string): string => `run-choices.${person}.${team}`;

/** Returns the choices of the last run that the person started in the team with this browser. */
export function readChoices(person: string, team: string): Partial<Choices> {
  try {
    const kept: unknown = JSON.parse(readKept(nameOf(person, team)) ?? '{}');
    if (typeof kept !== 'object' || kept === null) return {};
    const entries = Object.entries(kept).filter(
      ([name, value]) =>
        members.some((each) => each === name) && typeof value === 'string' && value.length <= maxLength,
    );
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}

/** Keeps the choices of a run that has started. */
export function keepChoices(person: string, team: string, draft: Draft): void {
  keep(nameOf(person, team), JSON.stringify(Object.fromEntries(members.map((name) => [name, draft[name]]))));
}
