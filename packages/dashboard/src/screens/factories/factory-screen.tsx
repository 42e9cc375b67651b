import { Page } from '../../frame/page.tsx';

export function FactoryScreen() {
  return <Page title="FactoryScreen">{null}</Page>;
}
