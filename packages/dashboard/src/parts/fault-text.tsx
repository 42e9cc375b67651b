import { Row, Text } from './blocks.tsx';
import { Button } from './controls.tsx';
import { Icon } from './icon.tsx';

/** A fault that the service or the page has found in a field. */
export interface Fault {
  readonly message: string;
  readonly suggestion?: string;
}

/** Shows a fault at its field. `control` is the id of the input into which the button inserts the suggestion. */
export function FaultText({ id, fault, control }: { id: string; fault: Fault; control: string }) {
  const { suggestion } = fault;
  return (
    <Row as="p" tone="bad" small top id={id}>
      <Icon name="warn" small />
      <Text grow>{fault.message}</Text>
      {suggestion !== undefined && (
        <Button small onClick={() => fill(control, suggestion)}>
          {`Use ${suggestion}`}
        </Button>
      )}
    </Row>
  );
}

/** Sets the value of an input with the same events as when a person types, so that React notices the change. */
function fill(id: string, value: string): void {
  const input = document.getElementById(id);
  if (input === null) return;
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input), 'value')?.set?.call(input, value);
  input.dispatchEvent(new Event('input', { bubbles: true }));
  input.focus();
}
