import type { TeamAutomation, TeamWebhook } from '@runyard/contract/automations/team-lists';
import { visibleText } from '@runyard/contract/wire/visible';
import { useNavigate } from '@tanstack/react-router';
import { inTeam } from '../../frame/search.ts';

const box = { width: 220, height: 40, gap: 16 } as const;
const columns = [10, 370, 730] as const;

/** One box of the map. */
interface Place {
  readonly id: string;
  readonly name: string;
  readonly note: string;
  readonly isWrong: boolean;
  readonly isOff: boolean;
  readonly to: string | undefined;
}

/** Cuts a text to the width of a box. */
const cut = (text: string): string => (text.length > 28 ? `${text.slice(0, 27)}…` : text);

/** Returns the ids of the sources that an automation listens to. */
function sourcesOf({ triggers }: TeamAutomation, webhooks: readonly TeamWebhook[]): string[] {
  return triggers.flatMap(({ provider, filter }) => {
    if (provider !== 'webhook') return [provider];
    const named = filter?.webhook_ids;
    return Array.isArray(named) ? named.map(String) : webhooks.map(({ uid }) => uid);
  });
}

/**
 * Draws the links between triggers and agents: webhooks and schedules on the left, automations in the middle, and the agents that get the
 * runs on the right.
 */
export function FactoryMap({
  factoryUid,
  webhooks,
  automations,
}: {
  factoryUid: string;
  webhooks: readonly TeamWebhook[];
  automations: readonly TeamAutomation[];
}) {
  const navigate = useNavigate();
  const providers = [
    ...new Set(automations.flatMap(({ triggers }) => triggers.map(({ provider }) => provider))),
  ].filter((provider) => provider !== 'webhook');
  const sources: Place[] = [
    ...webhooks.map(({ uid, name, signature_scheme: scheme, auth_mode: mode, enabled }) => ({
      id: uid,
      name,
      note: scheme ?? mode.replaceAll('_', ' '),
      isWrong: false,
      isOff: !enabled,
      to: `/factories/${factoryUid}/webhooks/${uid}`,
    })),
    ...providers.map((provider) => ({
      id: provider,
      name: provider,
      note: provider === 'schedule' ? 'times' : 'events',
      isWrong: false,
      isOff: false,
      to: undefined,
    })),
  ];
  const middle: Place[] = automations.map(({ uid, name, enabled, triggers, problems }) => ({
    id: uid,
    name,
    note: triggers.map(({ event }) => event).join(', '),
    isWrong: (problems ?? []).length > 0,
    isOff: !enabled,
    to: `/factories/${factoryUid}/automations/${uid}`,
  }));
  const agents: Place[] = [...new Set(automations.map(({ agent }) => agent ?? 'foreman'))].map((name) => ({
    id: name,
    name,
    note: 'agent',
    isWrong: false,
    isOff: false,
    to: undefined,
  }));
  if (middle.length === 0) return null;
  const rows = Math.max(sources.length, middle.length, agents.length);
  const y = (index: number): number => 10 + index * (box.height + box.gap);
  const wires = automations.flatMap((automation, index) => [
    ...sourcesOf(automation, webhooks).flatMap((source) => {
      const from = sources.findIndex(({ id }) => id === source);
      return from < 0
        ? []
        : [{ key: `${source}-${automation.uid}`, x: columns[0], from, to: index, isOff: !automation.enabled }];
    }),
    {
      key: `${automation.uid}-agent`,
      x: columns[1],
      from: index,
      to: agents.findIndex(({ name }) => name === (automation.agent ?? 'foreman')),
      isOff: !automation.enabled,
    },
  ]);
  const draw = (places: readonly Place[], x: number) =>
    places.map((place, index) => (
      // biome-ignore lint/a11y/noStaticElementInteractions: the list below the drawing has the same links for keyboards
      <g
        key={place.id}
        className={place.to ? 'map-go' : ''}
        onClick={place.to === undefined ? undefined : () => void navigate({ href: inTeam(place.to ?? '') })}
      >
        <rect
          className={`box ${place.isWrong ? 'warn' : ''} ${place.isOff ? 'offb' : ''}`}
          x={x}
          y={y(index)}
          width={box.width}
          height={box.height}
          rx="6"
        />
        <text x={x + 12} y={y(index) + 17} className="f-ink">
          {visibleText(cut(place.name))}
        </text>
        <text x={x + 12} y={y(index) + 32} className="f-ink3">
          {visibleText(cut(place.isOff ? `${place.note}, off` : place.note))}
        </text>
      </g>
    ));
  return (
    <div className="map">
      <svg className="chart" viewBox={`0 0 960 ${y(rows)}`} aria-hidden="true">
        {wires.map(({ key, x, from, to, isOff }) => {
          const begin = x + box.width;
          const end = x + 360;
          const [above, below] = [y(from) + box.height / 2, y(to) + box.height / 2];
          return (
            <path
              key={key}
              className={`wire ${isOff ? 'idle' : ''}`}
              d={`M${begin} ${above}C${begin + 70} ${above} ${end - 70} ${below} ${end} ${below}`}
            />
          );
        })}
        {draw(sources, columns[0])}
        {draw(middle, columns[1])}
        {draw(agents, columns[2])}
      </svg>
      <ul className="map-list">
        {automations.map((automation) => (
          <li key={automation.uid}>
            {visibleText(
              `${sourcesOf(automation, webhooks)
                .map((id) => sources.find((source) => source.id === id)?.name ?? id)
                .join(', ')} starts ${automation.name}, which gives its runs to ${automation.agent ?? 'foreman'}`,
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
