package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const provisionerName = "local/host-path"

// newProvisionerCommand gives every claim of the cluster's StorageClass a folder of the one node. All access modes
// work, because all pods share that node.
func newProvisionerCommand() *cobra.Command {
	var kubeconfig, root string
	command := &cobra.Command{
		Use: "host-path-provisioner",
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			ctx := command.Context()
			controller.NewProvisionController(ctx, client, provisionerName, hostPath{root},
				controller.LeaderElection(false)).Run(ctx)
			return nil
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file with the credentials")
	command.Flags().StringVar(&root, "root", "", "folder that holds the volumes")
	return command
}

type hostPath struct{ root string }

func (p hostPath) Provision(_ context.Context, options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	folder := filepath.Join(p.root, options.PVName)
	// Any user may write, as pods run under users of their own; the umask would take that away from MkdirAll.
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: options.PVC.Spec.Resources.Requests[v1.ResourceStorage]},
			PersistentVolumeSource: v1.PersistentVolumeSource{
				HostPath: &v1.HostPathVolumeSource{Path: folder},
			},
		},
	}, controller.ProvisioningFinished, nil
}

func (p hostPath) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	return os.RemoveAll(filepath.Join(p.root, volume.Name))
}
