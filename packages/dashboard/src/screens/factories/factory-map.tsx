import { visibleText } from '@runyard/contract/wire/visible';
import { useNavigate } from '@tanstack/react-router';
import { inTeam } from '../../frame/search.ts';
import chart from '../../parts/chart.module.css';
import styles from './factories.module.css';
import type { FactoryMapParts, Place, Wire } from './map-parts.ts';

const box = { width: 220, height: 40, gap: 16 } as const;
const columns = [10, 370, 730] as const;

/** Cuts a text to the width of a box. */
const cut = (text: string): string => (text.length > 28 ? `${text.slice(0, 27)}…` : text);

/**
 * Draws the links between triggers and agents: webhooks and schedules on the left, automations in the middle, and the agents that get the
 * runs on the right.
 */
export function FactoryMap({ parts }: { parts: FactoryMapParts }) {
  const navigate = useNavigate();
  const { sources, automations, agents, starts, gives } = parts;
  if (automations.length === 0) return null;
  const rows = Math.max(sources.length, automations.length, agents.length);
  const y = (index: number): number => 10 + index * (box.height + box.gap);
  const nameOf = (places: readonly Place[], id: string) => places.find((place) => place.id === id)?.name ?? id;
  const wire = (places: readonly [readonly Place[], readonly Place[]], x: number, { from, to, isOff }: Wire) => {
    const [left, right] = [places[0].findIndex(({ id }) => id === from), places[1].findIndex(({ id }) => id === to)];
    if (left < 0 || right < 0) return null;
    const [begin, end] = [x + box.width, x + 360];
    const [above, below] = [y(left) + box.height / 2, y(right) + box.height / 2];
    return (
      <path
        key={`${from} ${to}`}
        className={`${styles.wire} ${isOff ? styles.idle : ''}`}
        d={`M${begin} ${above}C${begin + 70} ${above} ${end - 70} ${below} ${end} ${below}`}
      />
    );
  };
  const draw = (places: readonly Place[], x: number) =>
    places.map((place, index) => (
      // biome-ignore lint/a11y/noStaticElementInteractions: the list below the drawing has the same links for keyboards
      <g
        key={place.id}
        className={place.to ? styles.place : ''}
        onClick={place.to === undefined ? undefined : () => void navigate({ href: inTeam(place.to ?? '') })}
      >
        <rect
          className={`${styles.box} ${place.isWrong ? styles.wrong : ''} ${place.isOff ? styles.off : ''}`}
          x={x}
          y={y(index)}
          width={box.width}
          height={box.height}
          rx="6"
        />
        <text x={x + 12} y={y(index) + 17} className={chart.ink}>
          {visibleText(cut(place.name))}
        </text>
        <text x={x + 12} y={y(index) + 32} className={chart.ink3}>
          {visibleText(cut(place.isOff ? `${place.note}, off` : place.note))}
        </text>
      </g>
    ));
  return (
    <div className={styles.map}>
      <svg className={chart.chart} viewBox={`0 0 960 ${y(rows)}`} aria-hidden="true">
        {starts.map((each) => wire([sources, automations], columns[0], each))}
        {gives.map((each) => wire([automations, agents], columns[1], each))}
        {draw(sources, columns[0])}
        {draw(automations, columns[1])}
        {draw(agents, columns[2])}
      </svg>
      <ul className={styles.mapList}>
        {automations.map(({ id, name }) => (
          <li key={id}>
            {visibleText(
              `${starts
                .filter(({ to }) => to === id)
                .map(({ from }) => nameOf(sources, from))
                .join(', ')} starts ${name}, which gives its runs to ${gives.find(({ from }) => from === id)?.to}`,
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
