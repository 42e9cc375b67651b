import { Page } from '../../frame/page.tsx';

export function NewRunScreen() {
  return <Page title="NewRunScreen">{null}</Page>;
}
