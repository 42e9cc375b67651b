import { Segments } from './blocks.tsx';
import { Button } from './controls.tsx';

/** Shows one button for each of `options`, of which one is chosen. An option is a value with its label. */
export const ChooseOne = <T,>({
  options,
  chosen,
  choose,
}: {
  options: readonly (readonly [value: T, label: string])[];
  chosen: T;
  choose: (value: T) => void;
}) => (
  <Segments>
    {options.map(([value, label]) => (
      <Button key={label} kind="ghost" small aria-pressed={value === chosen} onClick={() => choose(value)}>
        {label}
      </Button>
    ))}
  </Segments>
);
